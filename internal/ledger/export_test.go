package ledger

import "time"

// Times sets the limits of jobs, and the age at which a running job counts as lost.
func (l *Ledger) Times(limit, rescue time.Duration) { l.queue.times = jobTimes{limit, limit, rescue} }
