// Package chaos has a test that kills the parts of a running dpwatch, two workers, and the server of its ledger, at
// random, while clients send queries: make chaos runs it for ten minutes, make test-long for two. DPWATCH_CHAOS_TIME
// (10m) and DPWATCH_CHAOS_SEED set the time and the seed of the random choices, which the test prints.
//
// The engine counts for itself: its noise function writes a line to the server's log for every call in a replay. A line
// is written even if the transaction is rolled back, and replays are read-only. What the test asserts:
//
//   - Kills. Each one hit: the log of the relay says that the auditor was killed, and says it of no other one; a worker and a relay
//     ended by SIGKILL, and the auditor with its relay; the log of the ledger's server says that it recovers.
//   - No session of a client ends, and no answer is an error, except when the relay is killed.
//   - Trials. In the life of one auditor process the trials of a query in the ledger increase by at most the calls of its
//     noise function on each copy: no trial is counted twice. They never decrease, and no audit begins again. The trials of
//     all queries increase by at least the calls, less the turn in progress of each of the auditor's own workers, the turns that
//     other workers lost because they were killed or the turn was withdrawn and, for each turn that ended, the batch that was
//     running then. This does not hold if the ledger went away and the process was killed before it had written everything.
//   - Executions. The ledger has the executions that it had when a process was killed, and all that clients began afterwards,
//     less those that the relay counts as lost, dropped or set aside. It never has more than clients began.
package chaos
