package findings

import (
	"context"

	"github.com/dpwatch/dpwatch/config"
	"github.com/dpwatch/dpwatch/internal/app/records"
	"github.com/dpwatch/dpwatch/internal/app/setup"
	"github.com/dpwatch/dpwatch/internal/audit/saved"
	"github.com/dpwatch/dpwatch/internal/read"
)

// ReadDetails reads the details of an audit from the ledgers of a configuration. Without values, nothing that it
// returns holds any. The privacy profile takes time, so that it is read only if it is asked for.
func ReadDetails(ctx context.Context, env setup.Environment, c config.Config, id string, values, profile bool) (read.Details, error) {
	l, s, err := records.FindInLedgers(ctx, c, id)
	if err != nil {
		return read.Details{}, err
	}
	defer l.Close()
	if c, err = setup.EngineOf(c, s.Engine); err != nil {
		return read.Details{}, err
	}
	c.Log.Reveal = config.RevealNone // the key is for logs: who may see values here depends on the role
	if values {
		c.Log.Reveal = config.RevealValues
	}
	x, row, err := ExplainAudit(ctx, env, c, l, s, values)
	if err != nil {
		return read.Details{}, err
	}
	d := read.NewDetails(x, values)
	figuresOf := saved.ReadQuickFigures
	if profile {
		figuresOf = saved.ReadFigures
	}
	figures, err := figuresOf(&row)
	if err != nil {
		d.Note("The figures in the ledger cannot be read: " + err.Error())
		return d, nil
	}
	if len(figures.Path) > 0 {
		d.Charts = read.NewCharts(&figures.Figures, values)
		d.Charts.Fleet = max(figures.Threshold, d.Charts.Threshold)
	}
	return d, nil
}

// Issue describes a violation for the maintainers of the engine, from the ledger: see [read.Issue].
func Issue(ctx context.Context, env setup.Environment, o ExplainOptions, version string) (string, error) {
	c, _, err := setup.Load(env, o.Config)
	if err != nil {
		return "", err
	}
	d, err := ReadDetails(ctx, env, c, o.ID, o.Reveal || c.Log.ShowsValues(), false)
	if err != nil {
		return "", err
	}
	x, err := d.Issue()
	if err != nil {
		return "", err
	}
	if x.Version = version; c.Neighbours.Configured() {
		x.Relation = c.Neighbours.Relation
	}
	return x.Markdown(), nil
}
