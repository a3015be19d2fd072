// Package ledger stores what an auditor must not forget, in one schema of a PostgreSQL database: the captured queries
// by identity, with who runs them and how often; the statements that were skipped; audits with their evidence, and
// their history. The auditors of many engines can share a ledger; an engine has one auditor at a time.
//
// It owns the schema and its migrations. It does not interpret evidence, replay or parse SQL.
//
// Errors give a server's SQLSTATE in place of its message, which may quote what was written (see sqlstate.Withhold).
//
// The role of the ledger owns the schema, and no other role has privileges on it. The replay role must not be able to
// read it: see Ledger.CheckHidden.
//
// # Turns
//
// The auditor gives turns of audits to workers, which are other processes. A turn is a job of River, the job queue,
// and a row of the table turns. River brings the turn to a worker: each engine has one queue, from which its workers
// take turns in the order in which they were given. The row is the fence. It says which turn of the audit is current,
// by a number that no other turn has, and which worker holds it; an audit has one row at most. Whatever a worker
// writes of an audit, it writes in a transaction that locks the row and checks number and holder. So a turn ends
// once, and a worker that was cut off, is late, or was given the job a second time writes nothing. The state of a job
// in River decides nothing: River cannot stop a job that a lost worker runs, and completes a cancelled job without an
// error. This package uses River by its API alone; no SQL here names its tables.
//
// The auditor's calls, all of the Turns and the Audits of an Engine from Acquire:
//
//   - Give makes a new turn current, and so outdates an earlier one. When it returns nil, the turn is given, and the
//     first worker with a free slot takes it. When it returns an error and the number 0, the turn is not given. When
//     it returns an error and a number, it is not given either, unless the connection was lost while the transaction
//     was committed: before the caller uses the audit's evidence, it calls Withdraw with the number.
//   - Current lists the current turns as of one moment. Worker says who holds a turn; "" means that none has taken it.
//     Done means that its worker has ended it: the Outcome is final, and Find returns the evidence that belongs to
//     it. After Find, Forget removes the turn. Lost means that no worker will end the turn, as far as the queue
//     shows: its worker returned without Complete, an operator removed the job, or River's leader gave it up.
//   - A lost worker is noticed by its heartbeat: see Worker.Silent, and Workers, which leaves out workers that have
//     ended. Its turns are still its own. The caller calls Withdraw for each, as for a turn that is Lost, before it
//     uses the evidence or gives the audit's next turn; Give alone does the same.
//   - Withdraw makes a turn outdated. When it returns true, the evidence in the ledger is that from before the turn,
//     and the worker can add nothing. When it returns false, the turn has ended, and Current shows it as Done; or it
//     was outdated already, and Current does not show it. Withdraw does not wait for the worker and does not stop it:
//     the worker notices at its next Turn.Hurried, or at the end. A job that no worker has taken ends without work
//     when one takes it.
//   - A turn that Current does not list and that the caller has not withdrawn or forgotten is outdated by one of the
//     calls above. Another auditor of the engine sees the turns that an earlier one gave, and may wait for them or
//     withdraw them.
//   - Save with evidence, Begin and SetAside outdate the turn of the audit: the auditor does not call them while it
//     waits for a worker. Save without evidence, SaveWatch and Note leave the turn as it is.
//
// Each of these calls is one transaction. None waits for a worker. They wait for the ledger, until their context is
// done or the server's statement_timeout of a minute, so a loop that must not block calls them elsewhere. WaitForTurn
// waits for the next end of a turn of any engine; it is a hint, and Current is the truth. There are no reports during a
// turn. Any worker may take any turn of its engine: a caller that wants a worker which has an audit's tables in its
// cache can only hope for it.
//
// The worker's calls: Work calls Run for each turn that it has taken, with a Turn whose Engine writes the turn's
// audit. Complete ends the turn, and stores evidence and outcome in one transaction. ErrTurnLost from any of them is
// final: the turn is outdated, and its results must be dropped. After another error of Complete the result is
// unknown, and it is called again. The context of a turn is done when Work ends, or when the turn reaches its limit
// of 15 minutes; evidence up to then can still be delivered with Complete and another context.
package ledger
