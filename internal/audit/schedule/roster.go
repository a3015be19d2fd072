package schedule

import (
	"slices"
	"time"
)

// Roster holds all audits. New creates it. It is not safe for concurrent use.
type Roster struct {
	members
	limits       Limits
	firsts       int // first turns since the last turn of another kind
	watch        watching
	first, other []*line // see survey
}

// New returns an empty Roster.
func New(limits Limits) *Roster {
	return &Roster{
		limits: limits, watch: watching{share: limits.Watch.Share},
		members: members{byKey: map[string]*Audit{}, shapes: map[shapeKey]*shape{}, owners: map[Owner]*account{}},
	}
}

// members are the audits of a Roster, with the state that those of one shape or owner have in common.
type members struct {
	list       []*Audit // in no order
	lines      []*[chunk]line
	free       []*line
	byKey      map[string]*Audit
	shapes     map[shapeKey]*shape
	owners     map[Owner]*account
	violations int
	extra      int // audits with extra places
	bytes      int64
	admitted   uint64
}

// Len returns the number of audits.
func (m *members) Len() int { return len(m.list) }

// Owners returns the number of owners with audits.
func (m *members) Owners() int { return len(m.owners) }

// Bytes returns the estimated memory of all audits, as of the last call of Resize for each.
func (m *members) Bytes() int64 { return m.bytes }

// chunk is the number of lines that are allocated at once.
const chunk = 256

// settle gives an audit a line beside those of the others.
func (m *members) settle(a *Audit) {
	if len(m.free) == 0 {
		more := new([chunk]line)
		m.lines = append(m.lines, more)
		for i := range more {
			m.free = append(m.free, &more[chunk-1-i])
		}
	}
	last := len(m.free) - 1
	own := m.free[last]
	m.free = m.free[:last]
	*own = *a.line
	a.line, own.audit = own, a
}

// leave gives an audit a line of its own.
func (m *members) leave(a *Audit) {
	own, left := new(line), a.line
	*own = *left
	a.line, own.audit = own, nil
	*left = line{}
	m.free = append(m.free, left)
}

// every calls visit with the lines of all audits, in no particular order, until it returns false.
func (m *members) every(visit func(*line) bool) {
	for _, lines := range m.lines {
		for i := range lines {
			if l := &lines[i]; l.audit != nil && !visit(l) {
				return
			}
		}
	}
}

func (m *members) add(a *Audit, now time.Time) {
	m.settle(a)
	key := shapeKey{a.Owner, a.Shape}
	if a.shape = m.shapes[key]; a.shape == nil {
		a.shape = &shape{key: key, closed: map[string]int{}}
		m.shapes[key] = a.shape
	}
	if a.account = m.owners[a.Owner]; a.account == nil {
		a.account = &account{used: m.leastUsed()}
		m.owners[a.Owner] = a.account
	}
	m.admitted++
	if a.Extra {
		m.extra++
	}
	a.phase, a.turns, a.since, a.number = Queued, 0, now, m.admitted
	a.shape.audits, a.begun = append(a.shape.audits, a), a.shape.begun
	a.account.audits++
	a.at = len(m.list)
	m.list, m.byKey[a.Key] = append(m.list, a), a
	m.bytes += a.Bytes
}

// leastUsed returns the smallest time used by an owner with audits: a new owner starts with it.
func (m *members) leastUsed() time.Duration {
	least := time.Duration(-1)
	for _, o := range m.owners {
		if least < 0 || o.used < least {
			least = o.used
		}
	}
	return max(least, 0)
}

// Remove removes an audit.
func (m *members) Remove(a *Audit) {
	if m.byKey[a.Key] != a {
		return
	}
	delete(m.byKey, a.Key)
	last := len(m.list) - 1
	m.list[a.at], m.list[last].at = m.list[last], a.at
	m.list[last] = nil
	m.list = m.list[:last]
	m.bytes -= a.Bytes
	if a.Extra {
		m.extra--
	}
	if a.phase == Violation {
		m.violations--
	}
	if a.turns > 0 {
		a.shape.begin(-1)
	}
	a.shape.audits = slices.DeleteFunc(a.shape.audits, func(b *Audit) bool { return a == b })
	m.drop(a.shape)
	if a.account.audits--; a.account.audits == 0 {
		delete(m.owners, a.Owner)
	}
	m.leave(a)
}

func (m *members) drop(s *shape) {
	if len(s.audits) == 0 && len(s.closed) == 0 {
		delete(m.shapes, s.key)
	}
}

// Resize records the memory of an audit.
func (m *members) Resize(a *Audit, bytes int64) {
	if m.byKey[a.Key] == a {
		m.bytes += bytes - a.Bytes
	}
	a.Bytes = bytes
}
