package app

import "sync"

// shown is the latest status of an engine as pages show it. Several pages share it, because a status may have thousands of audits.
type shown struct {
	mu      sync.Mutex // guards all
	status  []byte     // of the auditor, which snapshot shows
	parsed  *Snapshot
	changes uint64 // of status
}

// version returns the number of statuses since the first call.
func (x *shown) version(e *auditedEngine) uint64 {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.look(e)
	return x.changes
}

func (x *shown) look(e *auditedEngine) {
	if now := e.supervisor.Status(); len(now) != len(x.status) || len(now) > 0 && &now[0] != &x.status[0] {
		x.status, x.parsed = now, nil
		x.changes++
	}
}

// snapshot returns the status as a Snapshot, with the counters of the relay at the time at which the auditor sent its part. Before that, they are
// those of now.
func (x *shown) snapshot(e *auditedEngine) (*Snapshot, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.look(e)
	if x.parsed != nil && x.status != nil {
		return x.parsed, nil
	}
	text, err := e.statusJSON()
	if err != nil {
		return nil, err
	}
	x.parsed, err = newSnapshot(text)
	return x.parsed, err
}
