package findings

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/dpwatch/dpwatch/analysis"
	"github.com/dpwatch/dpwatch/config"
	"github.com/dpwatch/dpwatch/internal/app/oneoff"
	"github.com/dpwatch/dpwatch/internal/app/records"
	"github.com/dpwatch/dpwatch/internal/app/setup"
	"github.com/dpwatch/dpwatch/internal/app/status"
	"github.com/dpwatch/dpwatch/internal/audit/view"
	"github.com/dpwatch/dpwatch/internal/capture"
	"github.com/dpwatch/dpwatch/internal/ledger"
	"github.com/dpwatch/dpwatch/internal/withheld"
	"github.com/dpwatch/dpwatch/replay"
)

// Explanation is what is known about one audit, in five answers. Its JSON form is a contract with scripts.
type Explanation struct {
	ID      string           `json:"id"`
	Key     string           `json:"key"`
	Engine  string           `json:"engine,omitempty"`
	Summary string           `json:"summary"`
	Verdict string           `json:"verdict"` // of the audit, or its state
	Claimed analysis.Claimed `json:"claimed"`
	Rule    string           `json:"claim_rule,omitempty"`
	// Destinations are where answers went.
	Destinations []string `json:"destinations,omitempty"`

	HowBad  []string `json:"how_bad"`
	What    []string `json:"what_gives_it_away"`
	Why     []string `json:"why_probably"`
	Who     Who      `json:"who"`
	WhatNow []string `json:"what_now"`
	// NotProven lists what the audit does not show.
	NotProven []string `json:"not_proven"`

	Statement string `json:"statement,omitempty"` // as captured, with its literals; only if it may be shown
	// Parameters are the bound parameters of Statement in their order; those in the binary format of an unknown type as
	// \x and hexadecimal digits.
	Parameters []string        `json:"parameters,omitempty"`
	Then       []Following     `json:"then,omitempty"` // further statements of a sequence
	SQL        *view.SQLPair   `json:"sql,omitempty"`  // likewise
	Accepted   *view.Accepted  `json:"accepted,omitempty"`
	Actions    []ledger.Action `json:"actions,omitempty"` // the latest first
	Report     analysis.Report `json:"report"`
	Audit      status.AuditRow `json:"audit,omitzero"`    // everything about the audit; only with dpwatch explain --full
	History    []ledger.Event  `json:"history,omitempty"` // of its states, the latest first; likewise
	Notes      []string        `json:"-"`                 // what could not be read

	row     status.AuditRow
	history []ledger.Event
}

// Full adds Audit.
func (x Explanation) Full() Explanation {
	x.Audit, x.History = x.row, x.history
	return x
}

// Following is a statement of a sequence after the first one; see Explanation.
type Following struct {
	Statement  string   `json:"statement"`
	Parameters []string `json:"parameters,omitempty"`
}

// ExplainOptions are the flags of dpwatch explain that concern the ledger.
type ExplainOptions struct {
	Config string
	ID     string // the beginning of an audit's id or key
	Reveal bool   // show the values of rows, and the statement with its literals
}

// Explain explains an audit from the ledger and the records of the neighbours.
func Explain(ctx context.Context, env setup.Environment, o ExplainOptions) (Explanation, error) {
	c, _, err := setup.Load(env, o.Config)
	if err != nil {
		return Explanation{}, err
	}
	l, s, err := records.FindInLedgers(ctx, c, o.ID)
	if err != nil {
		return Explanation{}, err
	}
	defer l.Close()
	if c, err = setup.EngineOf(c, s.Engine); err != nil {
		return Explanation{}, err
	}
	x, _, err := ExplainAudit(ctx, env, c, l, s, o.Reveal)
	return x, err
}

// ExplainAudit explains an audit of an engine from its ledger. It returns what the ledger has of it as well.
func ExplainAudit(ctx context.Context, env setup.Environment, c config.Config, l *ledger.Ledger, s records.Audit, reveal bool) (Explanation, ledger.Audit, error) {
	row, _, err := l.Find(ctx, s.Engine, s.Key)
	if err != nil {
		return Explanation{}, row, err
	}
	a, note := s.Row(&row)
	if reveal || c.Log.ShowsValues() {
		*a.Report = a.Report.Reveal()
	}
	x := ExplainRow(&a, &s)
	x.Who.choose(neighbourMembers(ctx, c, reveal))
	if note != "" {
		x.Notes = append(x.Notes, note)
	}
	if err := row.Query.Unreadable; err != nil && (reveal || c.Log.ShowsSQL()) {
		x.Notes = append(x.Notes, "the statement in the ledger cannot be read: "+err.Error())
	} else if q, err := capture.DecodeBinary(row.Query.Statement); err == nil && (reveal || c.Log.ShowsSQL()) {
		x.Statement, x.Parameters = q.SQL, parameterTexts(q.Params)
		for _, next := range q.Then {
			x.Then = append(x.Then, Following{next.SQL, parameterTexts(next.Params)})
		}
		if x.SQL, err = storedSQL(ctx, env, &c, q, a.Neighbour); err != nil {
			x.Notes = append(x.Notes, "the statement cannot be rewritten now: "+withheld.Reveal(err))
		}
	}
	return x, row, nil
}

// ExplainRunning explains an audit of a running dpwatch from its admin API.
func ExplainRunning(ctx context.Context, t status.Target, prefix string) (Explanation, error) {
	snapshot, err := status.Fetch(ctx, t)
	if err != nil {
		return Explanation{}, err
	}
	a, err := snapshot.Audit(prefix)
	if err == nil {
		prefix = a.Key
	}
	absent := errors.Is(err, status.ErrNoAudit)
	if err != nil && !absent {
		return Explanation{}, err
	}
	s, storedErr := records.FetchAudit(ctx, t, prefix)
	switch {
	case storedErr == nil && absent:
		a, _ = s.Row(nil)
		return ExplainRow(&a, &s), nil
	case storedErr == nil:
		return ExplainRow(&a, &s), nil
	case absent:
		return Explanation{}, storedErr
	}
	x := ExplainRow(&a, nil)
	x.Notes = append(x.Notes, "the ledger has not been read; who ran the query is known only in part")
	return x, nil
}

// ExplainRow answers the five questions about an audit. stored is nil if the ledger could not be read.
func ExplainRow(a *status.AuditRow, stored *records.Audit) Explanation {
	r := a.Result()
	x := Explanation{
		ID: a.ID, Key: a.Key, Engine: a.Route, Summary: a.Summary, Verdict: a.Verdict, Claimed: r.Claimed, Rule: a.ClaimRule, Destinations: a.Destinations,
		Accepted: a.Accepted, Report: r, SQL: a.SQL, Who: whoOf(a, stored), row: *a,
	}
	if stored != nil {
		x.Engine, x.Actions, x.history = stored.Engine, stored.Actions, ledger.Withhold(stored.History)
		x.Destinations = ledger.AddDestinations(x.Destinations, stored.Destinations)
		if c := stored.Accepted; c != nil && c.Until != nil && c.Until.After(time.Now()) && x.Accepted == nil {
			x.Accepted = &view.Accepted{Operator: c.Operator, At: c.At, Until: *c.Until, Reason: c.Reason}
		}
	}
	x.HowBad, x.What, x.Why = reportAnswers(a, r)
	if a.Timing != nil {
		x.What = append(x.What, "Latency: "+oneoff.TimingText(a.Timing))
	}
	x.WhatNow, x.NotProven = x.whatNow(), notProven(a.Verdict, r)
	return x
}

// storedSQL returns the texts that are replayed for a captured query on D0 and a neighbour.
func storedSQL(ctx context.Context, env setup.Environment, c *config.Config, q capture.Query, neighbour string) (*view.SQLPair, error) {
	f := oneoff.Options{Loaded: c, From: "public", Protocol: "captured", Captured: &q, Given: map[string]bool{"sql": true, "epsilon": true, "hoist": true}}
	if err := f.Resolve(env); err != nil {
		return nil, err
	}
	player, err := replay.New(f.ReplayOptions())
	if err != nil {
		return nil, err
	}
	statement, err := f.Rewrite(ctx, env, player, q)
	if err != nil {
		return nil, err
	}
	pair := &view.SQLPair{D0: statement.Text(0), D1: statement.Text(1)}
	for i, schema := range f.D1 {
		if schema == neighbour {
			pair.D1 = statement.Worlds[i+1]
		}
	}
	return pair, nil
}

// parameterTexts returns bound parameters as text.
func parameterTexts(params []capture.Param) (texts []string) {
	types := pgtype.NewMap()
	for _, p := range params {
		text := fmt.Sprintf(`\x%x`, p.Value)
		switch kind, known := types.TypeForOID(p.OID); {
		case p.Null:
			text = "NULL"
		case p.Format == pgtype.TextFormatCode:
			text = string(p.Value)
		case known:
			if value, err := kind.Codec.DecodeDatabaseSQLValue(types, p.OID, p.Format, p.Value); err == nil {
				text = fmt.Sprint(value)
			}
		}
		texts = append(texts, text)
	}
	return texts
}
