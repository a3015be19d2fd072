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

// Ledgers reads for pages what the ledgers of the engines have, within setup.LedgerTimeout.
type Ledgers struct {
	configuration *Configuration
	recent        recent
}

// each calls f with the configuration of an engine, or of each with the name "", and returns the results.
func each[T any](ctx context.Context, c *Configuration, engine string, f func(context.Context, config.Config) (T, error)) ([]T, error) {
	all, err := c.ofEngines(engine)
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
func (ls *Ledgers) Coverages(ctx context.Context, engine string, period time.Duration) ([]records.Coverage, error) {
	return each(ctx, ls.configuration, engine, func(ctx context.Context, c config.Config) (records.Coverage, error) {
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
func (ls *Ledgers) Budgets(ctx context.Context, engine string) ([]records.Budgets, error) {
	return each(ctx, ls.configuration, engine, records.ReadBudgets)
}

// shownAlerts bounds the alerts and deliveries of a page.
const shownAlerts = 100

// Alerts returns the latest alerts of all engines, and of those with failed messages the deliveries.
func (ls *Ledgers) Alerts(ctx context.Context) ([]records.Alert, error) {
	ctx, cancel := context.WithTimeout(ctx, setup.LedgerTimeout)
	defer cancel()
	var all []records.Alert
	for _, c := range setup.Ledgers(*ls.configuration.current.Load()) {
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
	alerts, err := l.Alerts.Latest(ctx, shownAlerts)
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
func (ls *Ledgers) RetryAlert(ctx context.Context, id string) (err error) {
	for _, c := range setup.Ledgers(*ls.configuration.current.Load()) {
		if _, err = records.RetryAlert(ctx, c, id); !errors.Is(err, ledger.ErrNoAlert) {
			return err
		}
	}
	return err
}

// Receivers returns the receivers of alerts: their names and types.
func (ls *Ledgers) Receivers() (all [][2]string) {
	for _, to := range ls.configuration.current.Load().Alerts.Receivers {
		all = append(all, [2]string{to.Name, to.Type})
	}
	return all
}
