package ledger_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/dpwatch/dpwatch/internal/ledger"
	"github.com/dpwatch/dpwatch/internal/pgtemp/pgtest"
)

// TestEvidenceStays: trouble, verdicts without trials and late writes do not replace evidence, and the evidence of an
// audit that has begun again is kept until the new evidence has more trials.
func TestEvidenceStays(t *testing.T) {
	t.Parallel()
	_, o := open(t)
	e := acquire(t, o, "e")
	conn := pgtest.Connect(t, o.DSN)
	stored := func(ctx context.Context) (text string) {
		err := conn.QueryRow(ctx, `SELECT concat_ws(' ', a.state, a.verdict, a.processes, a.trials, a.data_epoch, a.engine_epoch, encode(a.progress, 'escape'), '|', encode(f.progress, 'escape'))
			FROM "the ""ledger""".audits a LEFT JOIN "the ""ledger""".former_evidence f ON f.query = a.query`).Scan(&text)
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	state := func(begun, trials int) ledger.Audit {
		a := ledger.Audit{Query: query(), State: "running", DataEpoch: fmt.Sprint("d", begun), EngineEpoch: "e", Processes: begun}
		if trials > 0 {
			a.Trials, a.EvidenceTrials, a.Progress = trials/2, trials, fmt.Appendf(nil, "p%d", trials)
		}
		return a
	}
	begin := func(ctx context.Context, begun, _ int) error {
		_, _, err := e.Audits.Begin(ctx, state(begun, 0))
		return err
	}
	save := func(ctx context.Context, begun, trials int) error { return e.Audits.Save(ctx, state(begun, trials)) }
	verdict := func(ctx context.Context, begun, trials int) error {
		a := state(begun, trials)
		a.State, a.Verdict, a.DataEpoch, a.EngineEpoch = "decided", "inconclusive", "", ""
		if a.Progress == nil {
			a.Progress = []byte("reason")
		}
		return e.Audits.Save(ctx, a)
	}
	for _, step := range []struct {
		name          string
		do            func(ctx context.Context, begun, trials int) error
		begun, trials int
		err           error
		want          string
	}{
		{"evidence", save, 0, 500, nil, "running  0 250 d0 e p500 |"},
		{"no evidence", save, 0, 0, nil, "running  0 250 d0 e p500 |"},
		{"verdict without evidence", verdict, 0, 0, nil, "decided inconclusive 0 250 d0 e p500 |"},
		{"less evidence", save, 0, 499, ledger.ErrFewerTrials, "decided inconclusive 0 250 d0 e p500 |"},
		{"as much evidence", save, 0, 500, nil, "running  0 250 d0 e p500 |"},
		{"first beginning", begin, 1, 0, nil, "running  1 0 d1 e | p500"},
		{"late state", save, 0, 502, nil, "running  1 0 d1 e | p502"},
		{"late state with less", save, 0, 501, nil, "running  1 0 d1 e | p502"},
		{"late verdict", verdict, 0, 0, nil, "running  1 0 d1 e | p502"},
		{"new evidence", save, 1, 100, nil, "running  1 50 d1 e p100 | p502"},
		{"second beginning", begin, 2, 0, nil, "running  2 0 d2 e | p502"},
		{"verdict without former evidence", verdict, 2, 0, nil, "decided inconclusive 2 0   reason | p502"},
		{"third beginning", begin, 3, 0, nil, "running  3 0 d3 e | p502"},
		{"equal evidence", save, 3, 502, nil, "running  3 251 d3 e p502 | p502"},
		{"more evidence", save, 3, 503, nil, "running  3 251 d3 e p503 |"},
		{"lost beginning", save, 4, 10, nil, "running  4 5 d4 e p10 | p503"},
	} {
		if err := step.do(t.Context(), step.begun, step.trials); !errors.Is(err, step.err) {
			t.Fatalf("%s: %v, want %v", step.name, err, step.err)
		}
		if got := stored(t.Context()); got != step.want {
			t.Errorf("%s: %q, want %q", step.name, got, step.want)
		}
	}
	for _, verdict := range []string{"violation", ""} {
		a := state(4, 11)
		a.Verdict = verdict
		if err := e.Audits.Save(t.Context(), a); err != nil {
			t.Fatal(err)
		}
		if _, err := e.Prune(t.Context(), time.Now().Add(time.Hour), time.Microsecond, []string{"k"}); err != nil {
			t.Fatal(err)
		}
		if got, kept := stored(t.Context()), verdict == "violation"; strings.HasSuffix(got, "| p503") != kept {
			t.Errorf("with verdict %q, retention leaves %q", verdict, got)
		}
	}
}
