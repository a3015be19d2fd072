package keep

import "github.com/dpwatch/dpwatch/internal/capture"

// settling counts what this process was given, by what has become of it. observations.mu guards it.
type settling struct {
	handled capture.Settled // observed, or counted as skipped
	pending capture.Settled // handled when the pending batch was made
	settled capture.Settled // handled before the latest batch that the ledger or the spool has
	spooled uint64          // queries, besides, that the spool has as they are

	told capture.Settled // what OnSettled was told last
}

// Handled notes that a query of this process was observed or counted as skipped.
func (o *observations) Handled() { o.HandedOver(1) }

// HandedOver is Handled for n queries, which wait for the next batch as they are.
func (o *observations) HandedOver(n int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.settling.handled.Queries += uint64(n) //nolint:gosec // a number of queries
}

// Counted notes that n statements which this process did not capture are counted as skipped.
func (o *observations) Counted(n uint64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.settling.handled.Counted += n
}

// Settle notes that the spool has n queries of this process.
func (o *observations) Settle(n int) {
	o.mu.Lock()
	o.settling.spooled += uint64(n) //nolint:gosec // a number of queries
	o.mu.Unlock()
	o.tell()
}

// tell calls OnSettled if there is more to tell.
func (o *observations) tell() {
	now := o.Settled()
	o.mu.Lock()
	more := now != o.settling.told
	o.settling.told = now
	o.mu.Unlock()
	if more && o.OnSettled != nil {
		o.OnSettled(now)
	}
}

// Settled returns what this process was given and has a lasting record. Without a ledger that is all that was handled.
func (o *observations) Settled() capture.Settled {
	o.mu.Lock()
	defer o.mu.Unlock()
	s := &o.settling
	if !o.on {
		return s.handled
	}
	return capture.Settled{Queries: s.settled.Queries + s.spooled, Counted: s.settled.Counted}
}
