package read_test

import (
	"errors"
	"testing"

	"github.com/dpwatch/dpwatch/internal/capture"
	"github.com/dpwatch/dpwatch/rewrite"
	"github.com/dpwatch/dpwatch/rewrite/reasons"
)

// TestOracleUnknownNames: a call of one argument that neither catalog explains is a column only if the argument is a
// row, as for the server; such a plan, and one with an unknown type, says that it needs newer catalogs.
func TestOracleUnknownNames(t *testing.T) {
	t.Parallel()
	shop := database(t, relationsOf("public", 7)+"CREATE TYPE mood AS ENUM ('good'); CREATE DOMAIN few AS int")
	shadow := database(t, relationsOf("d0", 7)+relationsOf("d1", 6)+"CREATE TYPE mood AS ENUM ('good'); CREATE DOMAIN few AS int")
	source := contents(t, shop)
	r, err := rewrite.New(rewrite.Options{
		Protected: []rewrite.Table{{Schema: "public", Name: "people"}},
		Source:    source, Shadow: contents(t, shadow), Neighbours: []string{"d0", "d1"},
	})
	if err != nil {
		t.Fatal(err)
	}
	for sql, want := range map[string]struct {
		reason  rewrite.Reason
		unknown bool
	}{
		"SELECT sum(age(people)) FROM people":                                      {unknown: false}, // pg_catalog has a function age
		"SELECT sum(id(people)) FROM people":                                       {unknown: true},
		"SELECT sum(id(p)) FROM people p":                                          {unknown: true},
		"WITH w AS (SELECT id + 1 AS next FROM people) SELECT sum(next(w)) FROM w": {unknown: true},
		"SELECT f('a'), count(*) FROM people":                                      {reason: reasons.UnknownFunction},
		"SELECT f(NULL), count(*) FROM people":                                     {reason: reasons.UnknownFunction},
		"SELECT f($1), count(*) FROM people":                                       {reason: reasons.UnknownFunction},
		"SELECT f(id) FROM people":                                                 {reason: reasons.UnknownFunction},
		"SELECT f(p.id) FROM people p":                                             {reason: reasons.UnknownFunction},
		"SELECT f(id + 1) FROM people":                                             {reason: reasons.UnknownFunction},
		"SELECT f((SELECT 1)), count(*) FROM people":                               {reason: reasons.UnknownFunction},
		"SELECT f(abs(id)) FROM people":                                            {reason: reasons.UnknownFunction},
		"SELECT f('a'::text), count(*) FROM people":                                {reason: reasons.UnknownFunction},
		"SELECT f(ARRAY[1]), count(*) FROM people":                                 {reason: reasons.UnknownFunction},
		"SELECT f(ROW(1)), count(*) FROM people":                                   {reason: reasons.UnknownFunction},
		"SELECT sum(id::few), max('good'::mood), max('x'::text) FROM people":       {},
		"SELECT sum(id::bigint), max(id::public.few) FROM people":                  {},
		"SELECT sum(id::newer) FROM people":                                        {unknown: true},
		"SELECT count(*) FROM people WHERE ARRAY[id]::_newer IS NOT NULL":          {unknown: true},
	} {
		t.Run(sql, func(t *testing.T) {
			t.Parallel()
			q := capture.Query{SQL: sql, User: "nobody", Database: source.Database, Params: []capture.Param{{OID: 25, Value: []byte("a")}}}
			plan, err := r.Analyze(q)
			var refusal *rewrite.UnsupportedError
			switch {
			case want.reason != "":
				if !errors.As(err, &refusal) || refusal.Reason != want.reason {
					t.Errorf("%v; want %s", err, want.reason)
				}
			case err != nil:
				t.Error(err)
			case plan.UnknownNames != want.unknown:
				t.Errorf("UnknownNames %t, want %t", plan.UnknownNames, want.unknown)
			}
		})
	}
}
