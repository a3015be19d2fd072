package deliver

import (
	"context"
	"encoding/json"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/dpwatch/dpwatch/internal/alert"
	"github.com/dpwatch/dpwatch/internal/ledger"
)

// Options configures a Dispatcher.
type Options struct {
	Style     alert.Style
	Receivers []Receiver
	Routes    []Route
	// Ledger opens the ledger; nil = there is none. It is called again until it succeeds.
	Ledger func(context.Context) (*ledger.Ledger, error)
	// Patience is how long a message waits for the ledger before it is sent directly; 0 = a minute.
	Patience     time.Duration
	Resend       time.Duration // interval of repeating firing alerts to Alertmanagers
	ResolveAfter time.Duration // ends alerts about single events
	Retention    time.Duration // of ended alerts; 0 = they are kept
	Tick         time.Duration // interval of the periodic work; 0 = a second
	Stdout       io.Writer
	Logger       *zap.Logger
	Metrics      prometheus.Registerer
	Now          func() time.Time
}

// backlogLength is the number of findings that wait for Run.
const backlogLength = 1000

// Dispatcher keeps the alerts that fire and sends them. Create it with New.
type Dispatcher struct {
	opt     Options
	in      chan alert.Finding
	metrics *metrics
	stdout  sync.Mutex
	direct  sync.WaitGroup

	mu          sync.Mutex
	firing      firing
	undelivered map[string]undelivered // by receiver, as of the last count
	faults      map[string]string      // by operation: why the ledger did not do it the last time
	unstored    int                    // states of alerts that the ledger does not have yet

	// The goroutine of Run has these.
	began   time.Time
	store   *ledger.Ledger
	listed  bool        // firing has the alerts that earlier processes stored
	known   atomic.Bool // firing has them, or the ledger has been away for too long
	waiting []unsaved   // for the ledger, the oldest first
	// When the periodic work was done last.
	resent, counted, pruned time.Time
}

// unsaved is the state of an alert that the ledger does not have.
type unsaved struct {
	message   alert.Message
	receivers []string // none once it was sent directly
	since     time.Time
}

// New returns a Dispatcher that sends nothing before Run.
func New(o Options) (*Dispatcher, error) {
	if o.Patience == 0 {
		o.Patience = time.Minute
	}
	if o.Tick == 0 {
		o.Tick = time.Second
	}
	for i := range o.Receivers {
		o.Receivers[i].prepare()
	}
	d := &Dispatcher{opt: o, in: make(chan alert.Finding, backlogLength), firing: firing{}, faults: map[string]string{}}
	var err error
	d.metrics, err = newMetrics(o.Metrics, d)
	return d, err
}

// Notify takes a finding. It never waits: findings beyond a thousand that Run has not taken are dropped and counted,
// and so are new ones while 5000 alerts fire.
func (d *Dispatcher) Notify(f alert.Finding) {
	select {
	case d.in <- f:
	default:
		d.metrics.dropped.Inc()
	}
}

// Run sends alerts until ctx is done, and then for a short time those that it has taken.
func (d *Dispatcher) Run(ctx context.Context) {
	var jobs sync.WaitGroup
	tick := time.NewTicker(d.opt.Tick)
	defer tick.Stop()
	work, end := context.WithCancel(context.WithoutCancel(ctx)) // of what must not stop half-way
	defer end()
	d.began = d.opt.Now()
	d.connect(ctx, &jobs)
	for ctx.Err() == nil {
		in := d.in
		if !d.ready() {
			in = nil
		}
		select {
		case <-ctx.Done():
		case f := <-in:
			d.take(work, f)
		case <-tick.C:
			d.connect(ctx, &jobs)
			d.periodic(work)
		}
	}
	defer time.AfterFunc(finishTime, end).Stop()
	d.finish(work)
	jobs.Wait()
	if d.store != nil {
		d.store.Close()
	}
}

// ready reports whether findings can be applied: without the alerts of earlier processes, those would begin again. It
// does not wait for them longer than a message for the ledger.
func (d *Dispatcher) ready() bool {
	if d.opt.Ledger == nil || d.listed || d.opt.Now().Sub(d.began) >= d.opt.Patience {
		d.known.Store(true)
	}
	return d.known.Load()
}

// finishTime bounds what happens at the end.
const finishTime = 5 * time.Second

// finish stores or sends what was reported before the end.
func (d *Dispatcher) finish(ctx context.Context) {
	for len(d.in) > 0 { // nothing else takes from it
		d.take(ctx, <-d.in)
	}
	d.flush(ctx, 0)
	d.direct.Wait()
}

// take applies a finding.
func (d *Dispatcher) take(ctx context.Context, f alert.Finding) {
	m := d.opt.Style.Message(f, d.opt.Now().UTC().Truncate(time.Microsecond))
	if f.Kind.IsViolation() && m.Status == alert.Firing {
		d.change(ctx, alert.Message{Subject: "unconfirmed " + f.ID, Status: alert.Ended, EndsAt: m.Updated, Updated: m.Updated, Title: "fresh trials have confirmed the violation"})
	}
	d.change(ctx, m)
}

// mostFiring bounds the alerts that fire at the same time: clients can cause any number of unclaimed reads.
const mostFiring = 5000

// change applies a message to the alerts, and stores or sends the result.
func (d *Dispatcher) change(ctx context.Context, m alert.Message) {
	d.mu.Lock()
	_, known := d.firing[m.Subject]
	full := !known && len(d.firing) >= mostFiring && m.Status == alert.Firing
	var c change
	if !full {
		c = d.firing.apply(m)
	}
	d.mu.Unlock()
	if full {
		d.metrics.dropped.Inc()
	}
	if !c.changed {
		return
	}
	u := unsaved{message: c.now, since: d.opt.Now()}
	if !d.listed {
		u.since = d.began // it has waited for the ledger's alerts
	}
	if c.send {
		u.receivers = d.opt.receivers(&c.now)
		d.metrics.messages.WithLabelValues(string(c.now.Kind), c.now.Status).Inc()
	}
	d.waiting = append(d.waiting, u)
	d.flush(ctx, d.opt.Patience)
}

// flush stores what waits for the ledger. What has waited for patience or longer, or all without a ledger, is sent
// directly.
func (d *Dispatcher) flush(ctx context.Context, patience time.Duration) {
	if d.opt.Ledger != nil {
		d.save(ctx)
	}
	for i := range d.waiting {
		u := &d.waiting[i]
		if d.opt.Ledger == nil || d.opt.Now().Sub(u.since) >= patience {
			for _, name := range u.receivers {
				d.sendDirectly(ctx, d.opt.receiver(name), u.message)
			}
			u.receivers = nil
		}
	}
	if d.opt.Ledger == nil {
		d.waiting = nil
	}
	for len(d.waiting) > backlogLength {
		for _, name := range d.waiting[0].receivers {
			d.sendDirectly(ctx, d.opt.receiver(name), d.waiting[0].message)
		}
		d.waiting = d.waiting[1:]
	}
}

// save stores what waits, in its order for each alert: a state that the ledger rejects does not hold up other alerts.
func (d *Dispatcher) save(ctx context.Context) {
	var fault error
	var left []unsaved
	held := map[string]bool{}
	for _, u := range d.waiting {
		if d.store != nil && (fault == nil || ledger.Rejects(fault)) && !held[u.message.Subject] {
			attempt, cancel := context.WithTimeout(ctx, finishTime)
			err := d.store.Alerts.Save(attempt, stored(u.message), u.receivers)
			cancel()
			if err == nil {
				continue
			}
			fault = err
		}
		held[u.message.Subject] = true
		left = append(left, u)
	}
	if d.store != nil {
		d.result(opStore, fault)
	}
	d.waiting = left
	d.mu.Lock()
	d.unstored = len(left)
	d.mu.Unlock()
}

// stored returns the form of a message in the ledger.
func stored(m alert.Message) ledger.Alert {
	body, _ := json.Marshal(m) // a struct of plain fields and finite numbers
	a := ledger.Alert{
		ID: m.ID, Engine: m.Engine, Subject: m.Subject, Kind: string(m.Kind), Severity: string(m.Severity), Status: m.Status, Title: m.Title,
		StartsAt: m.StartsAt, Updated: m.Updated, Body: body,
	}
	if !m.EndsAt.IsZero() {
		a.EndsAt = &m.EndsAt
	}
	return a
}

// periodic ends alerts, repeats them and removes old ones.
func (d *Dispatcher) periodic(ctx context.Context) {
	now := d.opt.Now().UTC().Truncate(time.Microsecond)
	d.mu.Lock()
	ends := d.firing.expired(now.Add(-d.opt.ResolveAfter), now)
	d.mu.Unlock()
	for _, m := range ends {
		d.change(ctx, m)
	}
	d.flush(ctx, d.opt.Patience)
	if now.Sub(d.resent) >= d.opt.Resend {
		d.resent = now
		d.resend(ctx)
	}
	if now.Sub(d.counted) >= countEvery {
		d.counted = now
		d.count(ctx, now)
	}
	if d.store != nil && d.opt.Retention > 0 && now.Sub(d.pruned) >= time.Hour {
		d.pruned = now
		d.result(opPrune, d.store.Alerts.Prune(ctx, d.opt.Style.Engine, now.Add(-d.opt.Retention)))
	}
}
