package findings

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/dpwatch/dpwatch/analysis"
	"github.com/dpwatch/dpwatch/config"
	"github.com/dpwatch/dpwatch/internal/app/oneoff"
	"github.com/dpwatch/dpwatch/internal/app/records"
	"github.com/dpwatch/dpwatch/internal/app/setup"
	"github.com/dpwatch/dpwatch/internal/app/show"
	"github.com/dpwatch/dpwatch/internal/capture"
	"github.com/dpwatch/dpwatch/internal/ledger"
	"github.com/dpwatch/dpwatch/internal/read"
	"github.com/dpwatch/dpwatch/rewrite"
)

// ReproduceOptions are the flags of dpwatch audits reproduce.
type ReproduceOptions struct {
	Config    string
	ID        string // the beginning of an audit's id or key
	MaxTrials int    // 0 = that of the configuration
	Measure   int    // see oneoff.Options
	Operator  string // "" = the user of this process
	Reveal    bool   // show the values of rows, and the statement with its literals

	Former *read.Former // to compare with; nil = what the ledger has now
}

// Reproduction is the result of fresh trials, beside what the ledger had. Its JSON form is a contract with scripts.
type Reproduction struct {
	read.Conclusion
	ID      string `json:"id"`
	Key     string `json:"key"`
	Engine  string `json:"engine"`
	Summary string `json:"summary"`
	// Confirmed means that the fresh trials have the former verdict.
	Confirmed bool        `json:"confirmed"`
	Former    read.Former `json:"former"`
}

// Reproduce replays the query of an audit in the ledger with fresh trials, and evidence from zero. The evidence in the
// ledger stays as it is; the result is recorded as an action.
func Reproduce(ctx context.Context, env setup.Environment, o ReproduceOptions, progress oneoff.Progress) (Reproduction, error) {
	if o.MaxTrials < 0 || o.Measure < 0 {
		return Reproduction{}, errors.New("--max-trials and --measure must not be negative; --max-trials 0 = audit.max_trials of the configuration")
	}
	c, _, err := setup.Load(env, o.Config)
	if err != nil {
		return Reproduction{}, err
	}
	return ReproduceWith(ctx, env, c, o, progress)
}

// ReproduceWith does it with a configuration.
func ReproduceWith(ctx context.Context, env setup.Environment, c config.Config, o ReproduceOptions, progress oneoff.Progress) (Reproduction, error) {
	l, s, err := records.FindInLedgers(ctx, c, o.ID)
	if err != nil {
		return Reproduction{}, err
	}
	defer l.Close()
	if c, err = setup.EngineOf(c, s.Engine); err != nil {
		return Reproduction{}, err
	}
	q, err := storedQuery(ctx, l, s)
	if err != nil {
		return Reproduction{}, err
	}
	f := oneoff.Options{
		Epsilon: *s.Epsilon, Delta: *s.Delta, Curve: s.Curve, MaxTrials: o.MaxTrials, Measure: o.Measure,
		Given: map[string]bool{"sql": true, "epsilon": true, "delta": true, "max-trials": o.MaxTrials > 0},
	}
	r := Reproduction{ID: s.ID(), Key: s.Key, Engine: s.Engine, Summary: s.Summary, Former: s.Former()}
	if o.Former != nil {
		r.Former = *o.Former
	}
	var configured *rewrite.Claim
	if r.Conclusion, configured, err = oneoff.AuditCaptured(ctx, env, &c, &q, f, progress); err != nil {
		return r, fmt.Errorf("reproduce audit %s: %w", r.ID, err)
	}
	r.Claimed.Source = s.Source
	r.Confirmed = string(r.Verdict) == r.Former.Verdict
	if p := configured; p == nil || p.Epsilon != f.Epsilon || p.Delta != f.Delta || p.Curve != f.Curve {
		fmt.Fprintln(env.Stderr, "dpwatch: warning: the configuration has another claim for this query now; the claim of the audit is tested")
	}
	ctx, cancel := context.WithTimeout(ctx, setup.LedgerTimeout)
	defer cancel()
	if err := l.Actions.Reproduced(ctx, s.Engine, s.Key, records.Operator(o.Operator), r.result()); err != nil {
		fmt.Fprintln(env.Stderr, "dpwatch: warning: the result is not recorded:", err)
	}
	if r.Conclusion = r.Conclusion.Shown(o.Reveal || c.Log.ShowsValues()); !o.Reveal && !c.Log.ShowsSQL() {
		r.SQL = nil
	}
	return r, nil
}

// storedQuery returns the captured query of an audit that can be reproduced.
func storedQuery(ctx context.Context, l *ledger.Ledger, s read.Stored) (capture.Query, error) {
	row, found, err := l.Find(ctx, s.Engine, s.Key)
	switch {
	case err != nil:
		return capture.Query{}, err
	case row.Query.Unreadable != nil:
		return capture.Query{}, fmt.Errorf("audit %s cannot be reproduced: its statement in the ledger cannot be read: %w; use dpwatch audit --sql", s.ID(), row.Query.Unreadable)
	case !found || row.Query.Statement == nil:
		return capture.Query{}, fmt.Errorf("audit %s cannot be reproduced: the ledger has no statement of the query, because its audit has not begun; wait for it, or use dpwatch audit --sql", s.ID())
	case s.Epsilon == nil || s.Delta == nil:
		return capture.Query{}, fmt.Errorf("audit %s cannot be reproduced: its query claims no epsilon, so there is nothing to violate; use dpwatch audit --sql ... --epsilon E", s.ID())
	}
	q, err := capture.DecodeBinary(row.Query.Statement)
	if err != nil {
		return q, fmt.Errorf("audit %s cannot be reproduced: its statement was captured by another version of dpwatch; it can when a client has run it again", s.ID())
	}
	return q, nil
}

// result describes the result for the ledger, without values of rows.
func (r *Reproduction) result() string {
	return fmt.Sprintf("%s: %s, epsilon lower bound %s at confidence %g after %d pairs of trials (before: %s, %s, %d pairs)",
		r.outcome(), show.Words(string(r.Verdict)), analysis.LowerText(r.EpsilonLower, r.Claimed.Epsilon), r.Confidence, r.Trials.D0, show.Words(r.Former.Verdict), analysis.LowerText(r.Former.Lower, r.Claimed.Epsilon), r.Former.Trials)
}

func (r *Reproduction) outcome() string {
	if r.Confirmed {
		return "confirmed"
	}
	return "not confirmed"
}

// Write writes the result as text.
func (r Reproduction) Write(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "audit %s: %s by fresh trials\n", r.ID, strings.ToUpper(r.outcome()))
	if r.Former.Verdict != string(analysis.Violation) && r.Verdict == analysis.Violation {
		b.WriteString("The audit had not found this violation.\n")
	}
	table := show.NewTable(&b)
	table.Row("", "BEFORE", "NOW")
	table.Row("  verdict", show.Words(r.Former.Verdict), show.Words(string(r.Verdict)))
	table.Row("  epsilon lower bound", analysis.LowerText(r.Former.Lower, r.Claimed.Epsilon), (&read.Audit{Report: &r.Report}).BoundText())
	table.Row("  pairs of trials", fmt.Sprint(r.Former.Trials), fmt.Sprint(r.Trials.D0))
	table.Row("  neighbour", cmp.Or(r.Former.Neighbour, "-"), cmp.Or(r.Neighbour, "-"))
	table.Flush()
	b.WriteString("\n")
	if err := r.Conclusion.Write(&b); err != nil {
		return err
	}
	if r.SQL != nil {
		show.Section(&b, "statement", [][2]string{{"on D0", r.SQL.D0}, {"on D1", r.SQL.D1}})
	}
	_, err := io.WriteString(w, show.Printable(b.String()))
	return err
}
