package replay_test

import (
	"strings"
	"testing"

	"github.com/dpwatch/dpwatch/internal/pgtemp/pgtest"
)

// TestEvaluate: an expression has the value that PostgreSQL gives it, or a reason without one; one that writes is
// refused.
func TestEvaluate(t *testing.T) {
	t.Parallel()
	dsn := pgtest.Database(t)
	pgtest.Exec(t, dsn, "CREATE SEQUENCE public.numbers")
	p := player(t, options(dsn))
	for expression, want := range map[string]struct {
		number float64
		fault  string
	}{
		"(0.5 OPERATOR(pg_catalog./) 2)":                      {number: 0.25},
		"(1 OPERATOR(pg_catalog./) 2)":                        {number: 0}, // of integers
		"pg_catalog.ln(1)":                                    {},
		"CAST('0.5' AS pg_catalog.float8)":                    {number: 0.5},
		"(1 OPERATOR(pg_catalog./) 0)":                        {fault: "cannot be evaluated: SQLSTATE 22012"},
		"pg_catalog.ln(CAST('-1' AS pg_catalog.float8))":      {fault: "cannot be evaluated: SQLSTATE 2201E"},
		"NULLIF(1, 1)":                                        {fault: "is NULL"},
		"pg_catalog.nextval('public.numbers')":                {fault: "cannot be evaluated: SQLSTATE 25006"},
		"ln(3.0":                                              {fault: "cannot be evaluated: SQLSTATE 42601"},
		"nowhere.f(1)":                                        {fault: "cannot be evaluated: SQLSTATE 3F000"},
		"1 AS pg_catalog.float8); CREATE TEMP TABLE t (); --": {fault: "cannot be evaluated: SQLSTATE 42601"},
	} {
		number, fault, err := p.Evaluate(t.Context(), expression)
		if err != nil || number != want.number || fault != want.fault && !strings.HasPrefix(fault, want.fault+" (") {
			t.Errorf("%s: %g, %q, %v; want %g, %q", expression, number, fault, err, want.number, want.fault)
		}
	}
}
