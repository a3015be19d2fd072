package zoo_test

import (
	"strconv"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/dpwatch/dpwatch/analysis"
	"github.com/dpwatch/dpwatch/analysis/diagnosis"
	"github.com/dpwatch/dpwatch/internal/longtest"
	"github.com/dpwatch/dpwatch/internal/pgtemp/pgtest"
	"github.com/dpwatch/dpwatch/internal/showcase"
	"github.com/dpwatch/dpwatch/internal/zoo"
)

// TestCauses audits every wrong query on a real server, with fixed seeds. The right cause must be first for at least 90
// % of them.
func TestCauses(t *testing.T) {
	longtest.Skip(t)
	t.Parallel()
	dsn := pgtest.Database(t)
	conn := connect(t, dsn)
	d0 := showcase.Generate(showcase.Seed)
	for schema, d := range map[string]showcase.Data{"d0": d0, "d1": d0.Without(showcase.HeavyUser)} {
		if err := showcase.Load(t.Context(), conn, schema, d); err != nil {
			t.Fatal(err)
		}
	}
	if err := zoo.Install(t.Context(), conn, "public"); err != nil {
		t.Fatal(err)
	}
	var sessions [2]*pgx.Conn
	for w := range sessions {
		sessions[w] = connect(t, dsn)
		if _, err := sessions[w].Exec(t.Context(), "set search_path to d"+strconv.Itoa(w)+", public"); err != nil {
			t.Fatal(err)
		}
	}
	right := 0
	for _, q := range zoo.Mistakes() {
		for w, conn := range sessions { // random() gives the same numbers in every run of this test
			if _, err := conn.Exec(t.Context(), "select setseed($1)", .25+float64(w)/2); err != nil {
				t.Fatal(err)
			}
		}
		a, err := analysis.New(analysis.Claim{Epsilon: 1}, analysis.Options{MaxTrials: 3000, Unordered: !q.Sorted(), Query: analysis.Query{Constants: q.Constants()}})
		if err != nil {
			t.Fatal(err)
		}
		for !a.Decided() {
			a.Add(trial(t, sessions[0], q.SQL), trial(t, sessions[1], q.SQL))
		}
		if q.Cause == string(diagnosis.NoiseFamily) && a.Measure(300) == nil { // the family shows in its tails
			for !a.Decided() {
				a.Add(trial(t, sessions[0], q.SQL), trial(t, sessions[1], q.SQL))
			}
		}
		r := a.Report()
		switch f := r.Finding; {
		case f == nil:
			t.Errorf("%s: %s, %s", q.Name, r.Verdict, r.Reason)
		case len(f.Causes) == 0 || f.Causes[0].Code != diagnosis.Code(q.Cause):
			t.Logf("%s: %+v, want %s", q.Name, f.Causes, q.Cause)
		default:
			right++
		}
	}
	if 10*right < 9*len(zoo.Mistakes()) {
		t.Errorf("the right cause is first for %d of %d", right, len(zoo.Mistakes()))
	}
}

// trial runs a query once. Its numbers are those of PostgreSQL's text form.
func trial(t *testing.T, conn *pgx.Conn, sql string) (o analysis.Outcome) {
	t.Helper()
	results, err := conn.PgConn().Exec(t.Context(), sql).ReadAll()
	if err != nil {
		if o.SQLState = state(err); o.SQLState == "" {
			t.Fatal(err)
		}
		o.Message = err.Error()
		return o
	}
	for _, c := range results[0].FieldDescriptions {
		o.Columns = append(o.Columns, analysis.Column{Name: c.Name, Discrete: c.DataTypeOID != 701})
	}
	for _, row := range results[0].Rows {
		values := make([]analysis.Value, len(row))
		for i, text := range row {
			x, err := strconv.ParseFloat(string(text), 64)
			switch {
			case text == nil:
				values[i] = analysis.Value{Kind: analysis.Null}
			case err != nil:
				values[i] = analysis.Value{Kind: analysis.Text, Text: string(text)}
			default:
				values[i] = analysis.Value{Kind: analysis.Number, Num: x}
				if _, after, _ := strings.Cut(string(text), "."); results[0].FieldDescriptions[i].DataTypeOID == 1700 {
					values[i].Places = uint16(len(after) + 1)
				}
			}
		}
		o.Rows = append(o.Rows, values)
	}
	return o
}
