package deliver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/dpwatch/dpwatch/internal/alert"
	"github.com/dpwatch/dpwatch/internal/ledger"
)

// Attempts to send a message directly, and the time before the second; each further one waits twice as long.
const (
	directAttempts = 5
	directBackoff  = time.Second
)

// sendDirectly sends a message without the ledger, in the background, after those that were sent directly to the
// receiver before.
func (d *Dispatcher) sendDirectly(ctx context.Context, r *Receiver, m alert.Message) {
	before, sent := r.last, make(chan struct{})
	r.last = sent
	d.direct.Go(func() {
		defer close(sent)
		if before != nil {
			<-before
		}
		wait := directBackoff
		for attempt := 1; ; attempt++ {
			err := r.limit.Wait(ctx)
			if err == nil {
				err = d.attempt(ctx, r, m)
			}
			var permanent *ledger.PermanentError
			switch {
			case err == nil:
				return
			case attempt == directAttempts || errors.As(err, &permanent) || ctx.Err() != nil:
				d.metrics.deliveries.WithLabelValues(r.Name, outcomeDead).Inc()
				d.opt.Logger.Error("an alert was not delivered", zap.String("receiver", r.Name), zap.String("alert", m.ID), zap.String("kind", string(m.Kind)), zap.Error(err))
				return
			}
			select {
			case <-ctx.Done():
			case <-time.After(wait):
			}
			wait *= 2
		}
	})
}

// attempt sends a message once and counts it.
func (d *Dispatcher) attempt(ctx context.Context, r *Receiver, m alert.Message) error {
	if r.Type == "alertmanager" {
		r.order.Lock()
		defer r.order.Unlock()
	}
	now := d.opt.Now()
	err := r.send(ctx, &lockedWriter{&d.stdout, d.opt.Stdout}, now, now.Add(3*d.opt.Resend), m)
	outcome := outcomeDelivered
	if err != nil {
		outcome = outcomeFailed
		d.opt.Logger.Warn("an attempt to deliver an alert failed", zap.String("receiver", r.Name), zap.String("alert", m.ID), zap.Error(err))
	}
	d.metrics.deliveries.WithLabelValues(r.Name, outcome).Inc()
	return err
}

// sendStored makes one attempt to send a message that the ledger has.
func (d *Dispatcher) sendStored(ctx context.Context, stored ledger.Delivery) error {
	r := d.opt.receiver(stored.Receiver)
	if r == nil {
		return &ledger.PermanentError{Err: fmt.Errorf("alerts.receivers has no receiver %q any more", stored.Receiver)}
	}
	var m alert.Message
	if err := json.Unmarshal(stored.Body, &m); err != nil {
		return &ledger.PermanentError{Err: errors.New("the stored message is not valid")}
	}
	if wait := r.limit.Reserve(); wait.Delay() > 0 {
		after := wait.Delay()
		wait.Cancel()
		return &ledger.LaterError{After: after}
	}
	return d.attempt(ctx, r, m)
}

// resend repeats the alerts that fire to the Alertmanagers, which end those that are not repeated. Without the ledger
// it repeats those that it had.
func (d *Dispatcher) resend(ctx context.Context) {
	if d.store != nil {
		d.list(ctx)
	}
	for i := range d.opt.Receivers {
		r := &d.opt.Receivers[i]
		if r.Type == "alertmanager" && r.repeats.CompareAndSwap(false, true) {
			d.direct.Go(func() {
				defer r.repeats.Store(false)
				d.repeat(ctx, r)
			})
		}
	}
}

// repeat sends the alerts that fire to an Alertmanager again.
func (d *Dispatcher) repeat(ctx context.Context, r *Receiver) {
	r.order.Lock()
	defer r.order.Unlock()
	now := d.opt.Now()
	var all []alert.Message
	d.mu.Lock()
	for _, m := range d.firing {
		if slices.Contains(d.opt.receivers(&m), r.Name) {
			all = append(all, m)
		}
	}
	d.mu.Unlock()
	if len(all) == 0 {
		return
	}
	if err := r.send(ctx, io.Discard, now, now.Add(3*d.opt.Resend), all...); err != nil && ctx.Err() == nil {
		d.metrics.deliveries.WithLabelValues(r.Name, outcomeFailed).Inc()
		d.opt.Logger.Warn("the firing alerts cannot be repeated", zap.String("receiver", r.Name), zap.Int("alerts", len(all)), zap.Error(err))
	}
}

// lockedWriter writes one message at a time.
type lockedWriter struct {
	mu *sync.Mutex
	w  io.Writer
}

func (l *lockedWriter) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(p)
}

// Test sends a test alert, and its end if the receiver gets such, to a receiver. It returns an error of the first
// attempt.
func Test(ctx context.Context, r Receiver, style alert.Style, stdout io.Writer, now time.Time) error {
	r.prepare()
	m := style.TestMessage(now)
	if err := r.send(ctx, stdout, now, now.Add(time.Minute), m); err != nil || !r.SendResolved {
		return err
	}
	m = over(m, now.Add(time.Second), "the test is over").State()
	return r.send(ctx, stdout, now, now.Add(time.Minute), m)
}
