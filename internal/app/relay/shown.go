package relay

import (
	"sync"
	"sync/atomic"

	"github.com/dpwatch/dpwatch/internal/app/status"
)

// shown is the latest status of an engine as pages show it. Several pages share it, because a status may have thousands of audits.
type shown struct {
	mu      sync.Mutex // guards all
	status  []byte     // of the auditor, which snapshot shows
	parsed  *status.Snapshot
	public  *status.Snapshot // parsed without values
	changes uint64           // of status
	// mayHold is whether an auditor has had log.values or log.sql set, so that its status may hold values.
	mayHold atomic.Bool
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
		x.status, x.parsed, x.public = now, nil, nil
		x.changes++
	}
}

// snapshot returns the status as a Snapshot, with the counters of the relay at the time at which the auditor sent its part. Before that, they are
// those of now. Without values, it has no text that may hold any: with log.values and log.sql, the auditor's status does.
func (x *shown) snapshot(e *auditedEngine, values bool) (*status.Snapshot, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.look(e)
	if kept := x.kept(values); kept != nil && x.status != nil {
		return kept, nil
	}
	text, err := e.statusJSON()
	if err != nil {
		return nil, err
	}
	s, err := status.NewSnapshot(text)
	if err != nil {
		return nil, err
	}
	if values {
		x.parsed = s
		return s, nil
	}
	if x.mayHold.Load() {
		s.Withhold()
	}
	x.public = s
	return s, nil
}

func (x *shown) kept(values bool) *status.Snapshot {
	if values {
		return x.parsed
	}
	return x.public
}
