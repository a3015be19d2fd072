package findings

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/dpwatch/dpwatch/config"
	"github.com/dpwatch/dpwatch/internal/app/oneoff"
	"github.com/dpwatch/dpwatch/internal/app/records"
	"github.com/dpwatch/dpwatch/internal/app/setup"
	"github.com/dpwatch/dpwatch/internal/app/status"
	"github.com/dpwatch/dpwatch/internal/capture"
	"github.com/dpwatch/dpwatch/internal/ledger"
	"github.com/dpwatch/dpwatch/internal/read"
	"github.com/dpwatch/dpwatch/internal/withheld"
)

// ExplainOptions are the flags of dpwatch explain that concern the ledger.
type ExplainOptions struct {
	Config string
	ID     string // the beginning of an audit's id or key
	Reveal bool   // show the values of rows, and the statement with its literals
}

// Explain explains an audit from the ledger and the records of the neighbours.
func Explain(ctx context.Context, env setup.Environment, o ExplainOptions) (read.Explanation, error) {
	c, _, err := setup.Load(env, o.Config)
	if err != nil {
		return read.Explanation{}, err
	}
	l, s, err := records.FindInLedgers(ctx, c, o.ID)
	if err != nil {
		return read.Explanation{}, err
	}
	defer l.Close()
	if c, err = setup.EngineOf(c, s.Engine); err != nil {
		return read.Explanation{}, err
	}
	x, _, err := ExplainAudit(ctx, env, c, l, s, o.Reveal)
	return x, err
}

// ExplainAudit explains an audit of an engine from its ledger. It returns what the ledger has of it as well.
func ExplainAudit(ctx context.Context, env setup.Environment, c config.Config, l *ledger.Ledger, s read.Stored, reveal bool) (read.Explanation, ledger.Audit, error) {
	row, _, err := l.Find(ctx, s.Engine, s.Key)
	if err != nil {
		return read.Explanation{}, row, err
	}
	a, note := records.WithEvidence(&s, &row)
	if reveal || c.Log.ShowsValues() {
		*a.Report = a.Report.Reveal()
	}
	x := read.Explain(a, &s)
	x.Revealed = reveal || c.Log.ShowsValues()
	x.Who.Choose(neighbourMembers(ctx, c, reveal))
	if note != "" {
		x.Notes = append(x.Notes, note)
	}
	if err := row.Query.Unreadable; err != nil && (reveal || c.Log.ShowsSQL()) {
		x.Notes = append(x.Notes, "the statement in the ledger cannot be read: "+err.Error())
	} else if q, err := capture.DecodeBinary(row.Query.Statement); err == nil && (reveal || c.Log.ShowsSQL()) {
		x.Asked.Statement, x.Asked.Parameters = q.SQL, parameterTexts(q.Params)
		for _, next := range q.Then {
			x.Asked.Then = append(x.Asked.Then, read.Following{Statement: next.SQL, Parameters: parameterTexts(next.Params)})
		}
		if x.Audit.SQL, err = oneoff.Texts(ctx, env, &c, &q, a.Neighbour); err != nil {
			x.Notes = append(x.Notes, "the statement cannot be rewritten now: "+withheld.Reveal(err))
		}
	}
	return x, row, nil
}

// ExplainRunning explains an audit of a running dpwatch from its admin API.
func ExplainRunning(ctx context.Context, t status.Target, prefix string) (read.Explanation, error) {
	snapshot, err := status.Fetch(ctx, t)
	if err != nil {
		return read.Explanation{}, err
	}
	a, err := snapshot.Audit(prefix)
	if err == nil {
		prefix = a.Key
	}
	absent := errors.Is(err, read.ErrNoAudit)
	if err != nil && !absent {
		return read.Explanation{}, err
	}
	s, storedErr := records.FetchAudit(ctx, t, prefix)
	switch {
	case storedErr == nil && absent:
		a = s.Audit()
		return read.Explain(a, &s), nil
	case storedErr == nil:
		return read.Explain(a, &s), nil
	case absent:
		return read.Explanation{}, storedErr
	}
	x := read.Explain(a, nil)
	x.Notes = append(x.Notes, "the ledger has not been read; who ran the query is known only in part")
	return x, nil
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
