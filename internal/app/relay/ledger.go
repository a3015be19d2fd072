package relay

import (
	"context"
	"errors"
	"time"

	"github.com/dpwatch/dpwatch/config"
	"github.com/dpwatch/dpwatch/internal/app/records"
	"github.com/dpwatch/dpwatch/internal/app/setup"
	"github.com/dpwatch/dpwatch/internal/app/show"
	"github.com/dpwatch/dpwatch/internal/ledger"
	"github.com/dpwatch/dpwatch/internal/web"
)

// The following answer pages. Each reads the ledger within setup.LedgerTimeout.

// configurations returns the configuration in force of an engine, or those of all with the name "".
func (r *Relay) configurations(engine string) ([]config.Config, error) {
	c := *r.current.Load()
	if engine == "" {
		return c.AllEngines(), nil
	}
	one, err := c.ForEngine(engine)
	return []config.Config{one}, err
}

// each calls f with the configuration of an engine, or of each with the name "", and returns the results.
func each[T any](ctx context.Context, r *Relay, engine string, f func(context.Context, config.Config) (T, error)) ([]T, error) {
	all, err := r.configurations(engine)
	if err != nil {
		return nil, RequestError{err}
	}
	ctx, cancel := context.WithTimeout(ctx, setup.LedgerTimeout)
	defer cancel()
	var out []T
	for _, c := range all {
		one, err := f(ctx, c)
		if err != nil {
			return nil, err
		}
		out = append(out, one)
	}
	return out, nil
}

// Coverages returns what became of the statements in a period.
func (r *Relay) Coverages(ctx context.Context, engine string, period time.Duration) ([]records.Coverage, error) {
	return each(ctx, r, engine, func(ctx context.Context, c config.Config) (records.Coverage, error) {
		return readCoverage(ctx, c, "", period)
	})
}

// readCoverage reads a coverage, with the texts of statements only for those who may read values.
func readCoverage(ctx context.Context, c config.Config, engine string, period time.Duration) (records.Coverage, error) {
	coverage, err := records.ReadCoverage(ctx, c, engine, period)
	if !web.MayReadValues(ctx) {
		coverage.WithoutTexts()
	}
	return coverage, err
}

// Budgets returns what analysts received beside the privacy budgets.
func (r *Relay) Budgets(ctx context.Context, engine string) ([]records.Budgets, error) {
	return each(ctx, r, engine, records.ReadBudgets)
}

// shownAlerts bounds the alerts and deliveries of a page.
const shownAlerts = 100

// Alerts returns the latest alerts of all engines, and of those with failed messages the deliveries.
func (r *Relay) Alerts(ctx context.Context) ([]records.Alert, error) {
	ctx, cancel := context.WithTimeout(ctx, setup.LedgerTimeout)
	defer cancel()
	var all []records.Alert
	for _, c := range setup.Ledgers(*r.current.Load()) {
		l, err := records.Open(ctx, c)
		if err != nil {
			return nil, err
		}
		some, err := readAlerts(ctx, l)
		l.Close()
		if err != nil {
			return nil, err
		}
		all = append(all, some...)
	}
	return all, nil
}

func readAlerts(ctx context.Context, l *ledger.Ledger) (all []records.Alert, err error) {
	alerts, err := l.Alerts(ctx, shownAlerts)
	if err != nil {
		return nil, err
	}
	for _, a := range alerts {
		one := records.Alert{Alert: a}
		if a.Failed+a.Pending > 0 {
			if one, err = records.FindAlert(ctx, l, a.ID); err != nil {
				return nil, err
			}
		}
		one.Title = show.Printable(one.Title)
		all = append(all, one)
	}
	return all, nil
}

// RetryAlert sends the failed messages of an alert again.
func (r *Relay) RetryAlert(ctx context.Context, id string) (err error) {
	for _, c := range setup.Ledgers(*r.current.Load()) {
		if _, err = records.RetryAlert(ctx, c, id); !errors.Is(err, ledger.ErrNoAlert) {
			return err
		}
	}
	return err
}

// Receivers returns the receivers of alerts: their names and types.
func (r *Relay) Receivers() (all [][2]string) {
	for _, to := range r.current.Load().Alerts.Receivers {
		all = append(all, [2]string{to.Name, to.Type})
	}
	return all
}

// Effective returns the configuration in force as a file, without secrets.
func (r *Relay) Effective() ([]byte, error) { return config.Print(*r.current.Load()) }

// PauseReplays pauses or resumes the replays of an engine; "" is all of them.
func (r *Relay) PauseReplays(engine string, paused bool) error { return r.pause(engine, paused) }
