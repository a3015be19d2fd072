package hoist_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dpwatch/dpwatch/internal/golden"
	"github.com/dpwatch/dpwatch/replay/hoist"
)

// knowledge returns a small catalog.
func knowledge() hoist.Knowledge {
	k := hoist.Knowledge{
		Functions: map[string]hoist.Traits{
			"random": {Volatile: true}, "laplace": {Volatile: true}, "anon_sum": {Volatile: true, Aggregate: true},
			"generate_series": {ReturnsSet: true}, "row_number": {Aggregate: true}, "~~~": {Volatile: true, Transaction: true},
		},
		Relations: map[hoist.Relation]bool{{Schema: "d0", Name: "noisy_view"}: true},
		Views:     map[hoist.Relation]string{{Schema: "d0", Name: "seen"}: "SELECT 1"},
	}
	for _, name := range []string{"sum", "count", "avg", "min", "max", "array_agg"} {
		k.Functions[name] = hoist.Traits{Aggregate: true}
	}
	for _, name := range []string{"sqrt", "ln", "cos", "abs", "md5", "upper", "round", "now", "age", "lower"} {
		k.Functions[name] = hoist.Traits{}
	}
	return k
}

// describe formats a plan.
func describe(p hoist.Plan) string {
	if len(p.Pieces) == 0 {
		return "nothing: " + p.Reason + "\n"
	}
	var b strings.Builder
	for _, piece := range p.Pieces {
		fmt.Fprintf(&b, "%s: %s\n", piece.Name, piece.Query)
	}
	fmt.Fprintf(&b, "rest: %s\n", p.Rest)
	if p.MayCorrelate {
		b.WriteString("unsure\n")
	}
	return b.String()
}

// TestGolden compares every plan with a reviewed one. The cases are named by their rule.
func TestGolden(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/*.sql")
	if err != nil || len(files) < 40 {
		t.Fatalf("%d cases, want 40 or more (%v)", len(files), err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".sql"), func(t *testing.T) {
			t.Parallel()
			sql, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			plan, err := hoist.Split(string(sql), hoist.Options{Knowledge: knowledge(), Prefix: "h"})
			got := describe(plan)
			if err != nil {
				got = "error: " + err.Error() + "\n"
			}
			name := strings.TrimSuffix(file, ".sql") + ".golden"
			golden.Check(t, name, got)
		})
	}
}

// TestTogether: queries that may share a transaction, and queries that may not.
func TestTogether(t *testing.T) {
	t.Parallel()
	k := knowledge()
	k.Functions["now"] = hoist.Traits{Transaction: true}
	k.Functions["moment"] = hoist.Traits{Volatile: true, Transaction: true}
	k.Relations[hoist.Relation{Schema: "d0", Name: "t"}] = false
	k.Relations[hoist.Relation{Schema: "d0", Name: "seen"}] = false
	k.Views = map[hoist.Relation]string{{Schema: "d0", Name: "seen"}: "SELECT 1"}
	for sql, want := range map[string]bool{
		"SELECT n + random() FROM pg_temp.h1":                               true,
		"WITH a AS (SELECT * FROM pg_temp.h1) SELECT n + laplace(1) FROM a": true,
		"SELECT count(*) + random() FROM d0.t":                              true,
		"SELECT count(*) + random() FROM d0.seen":                           false,
		"SELECT count(*) + random() FROM d0.noisy_view":                     false,
		"SELECT count(*) + random() FROM d0.never_asked_about":              false,
		"SELECT count(*) + random() FROM pg_class":                          false,
		"SELECT random() + unheard_of(1)":                                   false,
		"SELECT random() + moment()":                                        false,
		"SELECT random(), now()":                                            false,
		"SELECT random(), CURRENT_DATE":                                     false,
		"SELECT random(), ' Today'::date":                                   false,
		"SELECT random(), h.moment FROM pg_temp.h1 AS h":                    false,
		"SELECT random(), (h).moment FROM pg_temp.h1 AS h":                  false,
		"SELECT random() WHERE 1 ~~~ 2":                                     false,
		"SELECT random() FROM pg_temp.h1 ORDER BY n USING ~~~":              false,
		"SELECT random() WHERE 1 ~~~ ANY (SELECT n FROM pg_temp.h1)":        false,
		"SELECT random() FROM pg_temp.h1 FOR SHARE":                         false,
		"SELECT random(": false,
	} {
		if got := hoist.Together(sql, k); got != want {
			t.Errorf("%s: %v, want %v", sql, got, want)
		}
	}
}
