package relay

import (
	"encoding/json"
	"sync"
	"sync/atomic"

	"github.com/dpwatch/dpwatch/internal/app/status"
)

// shown is the latest status of an engine as pages and the API show it. Several requests share it, because a status may
// have thousands of audits.
type shown struct {
	mu      sync.Mutex // guards all
	status  []byte     // of the auditor, to which the others belong
	public  []byte     // status without values; nil = not made yet
	pages   [2]*status.Snapshot
	changes uint64 // of status
	// mayHold is whether an auditor has had log.reveal set, so that its status may hold values.
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
		x.status, x.public, x.pages = now, nil, [2]*status.Snapshot{}
		x.changes++
	}
}

// auditor returns the status that the auditor sent last, "null" before the first. Without values, no text in it can
// hold any: with log.reveal, the auditor's texts may.
func (x *shown) auditor(e *auditedEngine, values bool) (json.RawMessage, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.look(e)
	switch {
	case x.status == nil:
		return json.RawMessage("null"), nil
	case values || !x.mayHold.Load():
		return x.status, nil
	}
	if x.public == nil {
		text, err := status.Withhold(x.status)
		if err != nil {
			return nil, err
		}
		x.public = text
	}
	return x.public, nil
}

// snapshot returns the status as a Snapshot, with the counters of the relay at the time at which the auditor sent its
// part. Before that, they are those of now.
func (x *shown) snapshot(e *auditedEngine, values bool) (*status.Snapshot, error) {
	kind := 0
	if values {
		kind = 1
	}
	x.mu.Lock()
	x.look(e)
	kept := x.pages[kind]
	of := x.changes
	x.mu.Unlock()
	if kept != nil {
		return kept, nil
	}
	text, err := e.statusJSON(values)
	if err != nil {
		return nil, err
	}
	s, err := status.NewSnapshot(text)
	if err != nil {
		return nil, err
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.status != nil && x.changes == of {
		x.pages[kind] = s
	}
	return s, nil
}
