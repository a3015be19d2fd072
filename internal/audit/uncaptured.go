package audit

// NotRecorded is the reason in the ledger of executions whose query was not recorded, because the ledger was away for too long.
const NotRecorded = "not_recorded"

// Uncaptured adds statements that did not reach the auditor, by reason, to what the ledger counts as skipped. Status leaves
// them out: the relay has them.
func (a *Auditor) Uncaptured(statements map[string]uint64) {
	now := a.opt.Now()
	for reason, n := range statements {
		if n > 0 {
			a.keeper.skip(reason, n, now)
		}
	}
}
