package keep

import "sync/atomic"

// settling counts the queries that this process was offered, by what has become of them. The keeper's mutex guards it.
type settling struct {
	handled uint64 // they are observed, or counted as skipped
	pending uint64 // handled when the pending batch was made
	settled uint64 // handled before the latest batch that the ledger or the spool has
	spooled uint64 // besides: as they are, in the spool

	told atomic.Uint64 // of Keeper.OnSettled
}

// Handled notes that a query of this process was observed or counted as skipped.
func (k *Keeper) Handled() { k.HandedOver(1) }

// HandedOver is Handled for n queries, which wait for the next batch as they are.
func (k *Keeper) HandedOver(n int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.settling.handled += uint64(n) //nolint:gosec // a number of queries
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
	if n := k.Settled(); k.OnSettled != nil && k.settling.told.Swap(n) != n {
		k.OnSettled(n)
	}
}

// Settled returns how many queries of this process have a lasting record. Without a ledger they are all that were handled.
func (k *Keeper) Settled() uint64 {
	k.mu.Lock()
	defer k.mu.Unlock()
	s := &k.settling
	if !k.On {
		return s.handled
	}
	return s.settled + s.spooled
}
