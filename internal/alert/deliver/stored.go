package deliver

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"github.com/dpwatch/dpwatch/internal/alert"
	"github.com/dpwatch/dpwatch/internal/ledger"
)

// connect opens the ledger if it is not open, begins to send the messages that it has, and reads the alerts that fire.
// Each is tried again with the next tick if it fails; new alerts use the ledger as soon as it is open.
func (d *Dispatcher) connect(ctx context.Context, jobs *sync.WaitGroup) {
	if d.opt.Ledger == nil {
		return
	}
	if d.store == nil {
		l, err := d.opt.Ledger(ctx)
		if ctx.Err() == nil {
			d.result(opOpen, err)
		}
		if err != nil {
			return
		}
		d.store = l
		jobs.Go(func() { d.deliver(ctx, l) })
	}
	if !d.listed {
		if d.list(ctx); d.listed {
			d.flush(ctx, d.opt.Patience)
		}
	}
}

// list reads the alerts that fire from the ledger.
func (d *Dispatcher) list(ctx context.Context) {
	all, err := d.store.Alerts.Firing(ctx, d.opt.Style.Engine)
	if err == nil {
		err = d.adopt(all)
		d.listed = true
	}
	if ctx.Err() == nil {
		d.result(opList, err)
	}
}

// adopt takes the alerts that fire from the ledger: another process may audit the engine, or may have done so. The
// ledger does not have the present state of those that wait for it. The error is about alerts whose message cannot be
// read, which are not repeated.
func (d *Dispatcher) adopt(all []ledger.Alert) (err error) {
	keep := map[string]bool{}
	for _, u := range d.waiting {
		keep[u.message.Subject] = true
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, a := range all {
		if keep[a.Subject] {
			continue
		}
		keep[a.Subject] = true
		var m alert.Message
		if old, known := d.firing[a.Subject]; known && !a.Updated.After(old.Updated) {
			continue
		}
		if bad := json.Unmarshal(a.Body, &m); bad != nil {
			err = fmt.Errorf("the stored message of alert %s cannot be read", a.ID)
			continue
		}
		d.firing[a.Subject] = m
	}
	for subject := range d.firing {
		if !keep[subject] {
			delete(d.firing, subject)
		}
	}
	return err
}

// slots is the number of messages that are sent at the same time.
const slots = 4

// deliver sends the messages that the ledger has until ctx is done.
func (d *Dispatcher) deliver(ctx context.Context, l *ledger.Ledger) {
	for ctx.Err() == nil {
		err := l.Alerts.Deliver(ctx, ledger.DeliverOptions{
			Engine: d.opt.Style.Engine, Slots: slots, Every: d.opt.Tick, Logger: d.opt.Logger, Send: d.sendStored,
			Heard: func(err error) { d.result(opDeliver, err) },
		})
		if err != nil && ctx.Err() == nil {
			d.result(opDeliver, err)
			select {
			case <-ctx.Done():
			case <-time.After(d.opt.Tick):
			}
		}
	}
}
