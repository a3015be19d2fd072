package auditor

import (
	"context"
	"io"
	"math"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/dpwatch/dpwatch/analysis"
	"github.com/dpwatch/dpwatch/config"
	"github.com/dpwatch/dpwatch/internal/alert"
	"github.com/dpwatch/dpwatch/internal/alert/deliver"
	"github.com/dpwatch/dpwatch/internal/app/setup"
	"github.com/dpwatch/dpwatch/internal/app/show"
	"github.com/dpwatch/dpwatch/internal/audit"
	"github.com/dpwatch/dpwatch/internal/audit/desk"
	"github.com/dpwatch/dpwatch/internal/audit/view"
	"github.com/dpwatch/dpwatch/internal/finding"
	"github.com/dpwatch/dpwatch/internal/ledger"
	"github.com/dpwatch/dpwatch/internal/read"
)

// alerts sends findings to the log and to the receivers.
type alerts struct {
	sender     *alert.Sender
	dispatcher *deliver.Dispatcher
	conditions []condition
	log        *zap.Logger
}

const (
	resend         = time.Minute      // interval of repeating firing alerts to an Alertmanager
	resolveAfter   = 24 * time.Hour   // ends alerts about single events that are not repeated
	unhealthyAfter = 10 * time.Minute // time for which something is away before the alert auditor_unhealthy
)

// newAlerts returns the alerts that the configuration describes.
func newAlerts(c config.Config, stdout io.Writer, log *zap.Logger, registry *prometheus.Registry) (*alerts, error) {
	style := setup.AlertStyle(c)
	sender, err := alert.New(style.Scale, log, registry)
	if err != nil {
		return nil, err
	}
	o := deliver.Options{
		Style: style, Ledger: openAlerts(c), Resend: resend, ResolveAfter: resolveAfter,
		Retention: time.Duration(c.Ledger.Retention), Stdout: stdout, Logger: log, Metrics: registry, Now: time.Now,
	}
	for _, r := range c.Alerts.Receivers {
		o.Receivers = append(o.Receivers, setup.AlertReceiver(r))
	}
	for _, r := range c.Alerts.Routes {
		o.Routes = append(o.Routes, deliver.Route{Severity: r.Severity, Kind: r.Kind, Database: r.Database, User: r.User, Engine: r.Engine, Receivers: r.Receivers})
	}
	dispatcher, err := deliver.New(o)
	return &alerts{sender, dispatcher, conditions(c), log}, err
}

// openAlerts returns a function that opens the ledger for alerts; nil if there is no ledger or no receiver. The auditor
// migrates the ledger.
func openAlerts(c config.Config) func(context.Context) (*ledger.Ledger, error) {
	o, stored := setup.LedgerOptions(c)
	if !stored || len(c.Alerts.Receivers) == 0 {
		return nil
	}
	o.Connections = 3
	return func(ctx context.Context) (*ledger.Ledger, error) {
		ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
		defer cancel()
		return ledger.Open(ctx, o)
	}
}

// send sends a finding to the log and the receivers. It does not wait.
func (a *alerts) send(f alert.Finding) {
	a.sender.Send(f)
	a.dispatcher.Notify(f)
}

// lookEvery is the interval of looking at the auditor's status for alerts.
const lookEvery = 10 * time.Second

// run sends alerts until ctx is done.
func (a *alerts) run(ctx context.Context, auditor *audit.Auditor) {
	var dispatcher sync.WaitGroup
	dispatcher.Go(func() { a.dispatcher.Run(ctx) }) // after a panic the next process restores its alerts from the ledger
	defer dispatcher.Wait()
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			contain(a.log, "look for alerts", func() { a.look(auditor.Status(), time.Now()) })
		}
	}
}

// look sends what a status shows: conditions of the auditor, violations, and their ends. What was sent before is not
// sent again, but an earlier process may have ended before it sent them, receivers may be new, and bounds grow.
func (a *alerts) look(s view.Status, now time.Time) {
	for i := range a.conditions {
		c := &a.conditions[i]
		f, changed := c.look(&s, now)
		if changed {
			a.sender.Send(f)
		}
		if changed || f.Status == finding.Resolved {
			a.dispatcher.Notify(f)
		}
	}
	if s.Ledger != nil && !s.Ledger.Restored {
		return // the audits are not all there, and what operators decided about them is not
	}
	for i := range s.Audits {
		e := &s.Audits[i]
		switch {
		case e.Standing != nil && e.Status() == finding.Open:
			a.dispatcher.Notify(standing(e, e.Standing))
		case e.Status() == finding.Resolved:
			f := standing(e, &e.Resolved.Standing)
			f.Status, f.Reason = finding.Resolved, e.Resolved.String()
			a.dispatcher.Notify(f)
		}
	}
	for i := range s.Records {
		if r := &s.Records[i]; r.Standing != nil && r.Accepted == nil {
			f := alert.Finding{Group: r.Group, Summary: r.Summary, User: r.User, Database: r.Database, Route: r.Route, Odds: math.NaN()}
			desk.Describe(&f, r.ID, r.Standing)
			a.dispatcher.Notify(f)
		}
	}
	for id, c := range s.Accepted {
		a.dispatcher.Notify(alert.Finding{
			Kind: finding.Violation, Status: finding.Accepted, ID: id, Reason: "accepted until " + c.Until.UTC().Format(time.DateOnly) + ": " + c.Reason,
		})
	}
}

// state returns what the status shows of the alerts.
func (a *alerts) state() *view.AlertsState {
	s := view.AlertsState(a.dispatcher.State())
	return &s
}

// standing returns the finding of a violation of an audit.
func standing(e *read.Audit, v *read.Standing) alert.Finding {
	f := alert.Finding{
		Group: e.Group, Summary: e.Summary, User: e.User, Database: e.Database, Application: e.App, Route: e.Route, Odds: math.NaN(),
	}
	desk.Describe(&f, e.ID, v)
	if r := e.Report; r != nil {
		if f.Source, f.Confidence = r.Claimed.Source, r.Confidence; v.Curve == "" {
			f.Delta = r.Claimed.Delta
		}
	}
	return f
}

// condition is a state of the auditor that is alerted when it lasts.
type condition struct {
	kind      finding.Kind
	component string
	text      string
	after     time.Duration
	holds     func(*view.Status) (reason string, yes bool)

	since  time.Time // zero = it does not hold
	firing bool
}

// look returns the present finding of the condition, and whether it has just begun or ended. If another process audits
// the engine, that one reports it: the finding is neither present nor over.
func (c *condition) look(s *view.Status, now time.Time) (f alert.Finding, changed bool) {
	if s.Ledger != nil && s.Ledger.Holder != nil {
		c.since, c.firing = time.Time{}, false
		return f, false
	}
	reason, yes := c.holds(s)
	f = alert.Finding{Kind: c.kind, Component: c.component, Condition: c.text, Reason: reason}
	if !yes {
		f.Status = finding.Resolved
	}
	switch {
	case !yes:
		changed = c.firing
		c.since, c.firing = time.Time{}, false
	case c.since.IsZero():
		c.since = now
		fallthrough
	case !c.firing:
		c.firing = now.Sub(c.since) >= c.after
		changed = c.firing
	}
	return f, changed
}

// leastQueries is the number of distinct queries below which their coverage says little.
const leastQueries = 10

// conditions returns the conditions that the configuration asks for.
func conditions(c config.Config) (all []condition) {
	away := func(component, text string, holds func(*view.Status) (string, bool)) {
		all = append(all, condition{kind: finding.AuditorUnhealthy, component: component, text: text, after: unhealthyAfter, holds: holds})
	}
	away("shadow", "the shadow database is away: no queries are audited", func(s *view.Status) (string, bool) { return "", s.Shadow != "" })
	away("ledger", "the ledger is away: evidence is not stored", func(s *view.Status) (string, bool) {
		return "", s.Ledger != nil && (s.Ledger.Trouble != "" || !s.Ledger.Restored)
	})
	if c.Audit.Workers == 0 && !c.Audit.Observe {
		away("workers", "there are no workers: no queries are audited", func(s *view.Status) (string, bool) { return "", len(s.Workers) == 0 })
	}
	if share := c.Alerts.Coverage.Share; share > 0 {
		all = append(all, condition{
			kind: finding.CoverageLow, component: "queries", text: "few of the distinct DP queries have an audit with trials", after: time.Duration(c.Alerts.Coverage.After),
			holds: func(s *view.Status) (string, bool) {
				audited := s.Coverage.AuditedQueries
				if audited == nil {
					return "", false
				}
				return "audited share " + show.Number(analysis.Float(*audited)), s.Coverage.Queries >= leastQueries && *audited < share
			},
		})
	}
	return all
}
