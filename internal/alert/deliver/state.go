package deliver

import (
	"context"
	"maps"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/dpwatch/dpwatch/internal/ledger"
)

// What the ledger is asked to do.
const (
	opOpen    = "open"
	opList    = "list"    // read the alerts that fire
	opStore   = "store"   // an alert and its messages
	opDeliver = "deliver" // read a message, and store the result of sending it
	opCount   = "count"   // messages that have not arrived
	opPrune   = "prune"
)

func operations() []string { return []string{opOpen, opList, opStore, opDeliver, opCount, opPrune} }

// result notes how an operation of the ledger ended: an error is counted, and logged when it changes.
func (d *Dispatcher) result(operation string, err error) {
	text := ""
	if err != nil {
		text = err.Error()
		d.metrics.faults.WithLabelValues(operation).Inc()
	}
	d.mu.Lock()
	before := d.faults[operation]
	d.faults[operation] = text
	d.mu.Unlock()
	switch {
	case text != "" && text != before:
		d.opt.Logger.Error("the ledger of alerts has a fault: it is tried again; messages are sent directly if they cannot be stored for a minute", zap.String("operation", operation), zap.Error(err))
	case text == "" && before != "":
		d.opt.Logger.Info("the ledger of alerts works again", zap.String("operation", operation))
	}
}

// undelivered counts the messages to one receiver that have not arrived.
type undelivered struct {
	pending, failed int
	since           time.Time // of the oldest pending one; zero = there is none
}

// countEvery is the interval of counting messages that have not arrived.
const countEvery = 5 * time.Second

// count counts the messages that have not arrived. If the ledger cannot be read, those that it had stay, and grow
// older.
func (d *Dispatcher) count(ctx context.Context, now time.Time) {
	if d.store == nil {
		return
	}
	all, err := d.store.Alerts.Undelivered(ctx, d.opt.Style.Engine)
	if d.result(opCount, err); err != nil {
		return
	}
	counts := map[string]undelivered{}
	for _, u := range all {
		one := undelivered{pending: u.Pending, failed: u.Failed}
		if u.Pending > 0 {
			one.since = now.Add(-u.Oldest)
		}
		counts[u.Receiver] = one
	}
	for _, u := range d.waiting { // the ledger does not have them yet
		for _, name := range u.receivers {
			one := counts[name]
			one.pending++
			if one.since.IsZero() || u.since.Before(one.since) {
				one.since = u.since
			}
			counts[name] = one
		}
	}
	d.mu.Lock()
	d.undelivered = counts
	d.mu.Unlock()
}

// State describes the alerts of an engine.
type State struct {
	Firing   int
	Unstored int    // states of alerts that the ledger does not have yet
	Trouble  string // why the ledger did not do what alerts need the last time; "" = it did
	// Undelivered are the receivers with messages that have not arrived.
	Undelivered []ledger.Undelivered
}

// State returns the present state.
func (d *Dispatcher) State() State {
	d.mu.Lock()
	defer d.mu.Unlock()
	s := State{Firing: len(d.firing), Unstored: d.unstored}
	for _, operation := range operations() {
		if s.Trouble == "" {
			s.Trouble = d.faults[operation]
		}
	}
	for _, name := range slices.Sorted(maps.Keys(d.undelivered)) {
		u := d.undelivered[name]
		s.Undelivered = append(s.Undelivered, ledger.Undelivered{Receiver: name, Pending: u.pending, Failed: u.failed, Oldest: u.age(d.opt.Now())})
	}
	return s
}

// age returns how long the oldest pending message has waited.
func (u undelivered) age(now time.Time) time.Duration {
	if u.since.IsZero() {
		return 0
	}
	return max(now.Sub(u.since), 0)
}
