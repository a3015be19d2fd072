package keep

import "github.com/dpwatch/dpwatch/internal/capture"

// settling counts what this process was given, by what has become of it. The keeper's mutex guards it.
type settling struct {
	handled capture.Settled // observed, or counted as skipped
	pending capture.Settled // handled when the pending batch was made
	settled capture.Settled // handled before the latest batch that the ledger or the spool has
	spooled uint64          // queries, besides, that the spool has as they are

	told capture.Settled // what OnSettled was told last
}

// Handled notes that a query of this process was observed or counted as skipped.
func (k *Keeper) Handled() { k.HandedOver(1) }

// HandedOver is Handled for n queries, which wait for the next batch as they are.
func (k *Keeper) HandedOver(n int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.settling.handled.Queries += uint64(n) //nolint:gosec // a number of queries
}

// Counted notes that n statements which this process did not capture are counted as skipped.
func (k *Keeper) Counted(n uint64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.settling.handled.Counted += n
}

// Settle notes that the spool has n queries of this process.
func (k *Keeper) Settle(n int) {
	k.mu.Lock()
	k.settling.spooled += uint64(n) //nolint:gosec // a number of queries
	k.mu.Unlock()
	k.tell()
}

// tell calls OnSettled if there is more to tell.
func (k *Keeper) tell() {
	now := k.Settled()
	k.mu.Lock()
	more := now != k.settling.told
	k.settling.told = now
	k.mu.Unlock()
	if more && k.OnSettled != nil {
		k.OnSettled(now)
	}
}

// Settled returns what this process was given and has a lasting record. Without a ledger that is all that was handled.
func (k *Keeper) Settled() capture.Settled {
	k.mu.Lock()
	defer k.mu.Unlock()
	s := &k.settling
	if !k.On {
		return s.handled
	}
	return capture.Settled{Queries: s.settled.Queries + s.spooled, Counted: s.settled.Counted}
}
