package capture

import (
	"sync/atomic"
	"time"
)

// Definition says what a statement may have run that the auditor's catalogs do not have.
type Definition uint8

// The relations of a statement to changes of definitions: CREATE FUNCTION, CREATE OR REPLACE VIEW, ALTER and others.
const (
	Read        Definition = iota // the auditor has read the catalogs since the latest change through the proxy
	Unread                        // they were changed since, or are being changed
	Uncommitted                   // by the statement's own transaction: no other session sees that before it commits
)

// Definitions follows the changes of definitions that clients make through the proxy, so that the names which the
// auditor knows are not used beyond them. It is safe for concurrent use. The zero value is that of an engine without a
// change; a nil one follows nothing.
type Definitions struct {
	open    atomic.Int64 // transactions that have changed some
	changed atomic.Int64 // when the last of them ended, in nanoseconds since 1970
	read    atomic.Int64 // when the last reading of the catalogs began
	edition atomic.Uint64
}

// Begin records that a transaction has changed definitions; End must follow.
func (d *Definitions) Begin() {
	if d != nil {
		d.open.Add(1)
		d.edition.Add(1)
	}
}

// End records the end of such a transaction.
func (d *Definitions) End() {
	if d != nil {
		d.changed.Store(time.Now().UnixNano())
		d.open.Add(-1)
		d.edition.Add(1)
	}
}

// Read records when a reading of the catalogs began that the auditor uses now.
func (d *Definitions) Read(began time.Time) { d.read.Store(began.UnixNano()) }

// Renamed records that other names than before may reach something protected.
func (d *Definitions) Renamed() { d.edition.Add(1) }

// Edition returns a number, not 0, that changes whenever a text that reached nothing protected may reach something.
func (d *Definitions) Edition() uint64 {
	if d == nil {
		return 1
	}
	return d.edition.Load() + 1
}

// Unread reports whether definitions may have changed since the catalogs were read.
func (d *Definitions) Unread() bool {
	if d == nil {
		return false
	}
	changed := d.changed.Load()
	return d.open.Load() > 0 || changed != 0 && d.read.Load() <= changed
}
