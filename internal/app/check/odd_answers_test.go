package check_test

import (
	"context"
	"testing"
	"time"

	"github.com/dpwatch/dpwatch/internal/draft"
	"github.com/dpwatch/dpwatch/internal/pg/body"
	"github.com/dpwatch/dpwatch/internal/pg/catalog/read"
	"github.com/dpwatch/dpwatch/internal/pg/engine"
	"github.com/dpwatch/dpwatch/internal/pg/ident"
	"github.com/dpwatch/dpwatch/internal/pgtemp/pgtest"
	"github.com/dpwatch/dpwatch/internal/preflight"
	"github.com/dpwatch/dpwatch/replay/neighbours"
)

// TestOddAnswers: no reader of a database panics or hangs, whatever a server answers.
func TestOddAnswers(t *testing.T) {
	t.Parallel()
	for _, answer := range pgtest.OddAnswers() {
		t.Run(answer.Name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			dsn := pgtest.ServeAnswer(t, answer)
			limits := body.Limits{Bytes: 1 << 20, Tokens: 1 << 16}
			if _, err := read.Catalog(ctx, dsn, time.Minute); err == nil {
				t.Error("the catalog is read without an error")
			}
			reader := engine.NewReader(dsn, time.Minute, limits)
			defer reader.Close()
			_, _ = reader.Read(ctx)
			for _, extended := range []bool{false, true} {
				q := &engine.Question{DSNs: []string{dsn}, SQL: "SELECT version()", Timeout: time.Minute, Extended: extended}
				_, _ = q.Read(ctx)
				q.Close()
			}
			o := preflight.Options{Shadow: dsn, Catalog: dsn, ConnectTimeout: time.Minute, D0: "d0", D1: []string{"d1"}, Protected: []string{"public.people"}, Public: []string{"public.stores"}, Functions: []preflight.Function{{Name: "f", Epsilon: 1}}}
			if checks := preflight.Run(ctx, preflight.Shadow(o), preflight.Catalog(o)); preflight.Count(checks, preflight.Fault)+preflight.Count(checks, preflight.Unchecked) == 0 {
				t.Errorf("every check succeeds: %+v", checks)
			}
			_, _, _ = draft.Make(ctx, dsn, draft.Options{})
			n := neighbours.Options{
				Source: dsn, Target: dsn, Control: "dpwatch", D0: "d0", D1: []string{"d1"}, Protected: []ident.Table{{Schema: "public", Name: "people"}},
				Unit: neighbours.Unit{Table: ident.Table{Schema: "public", Name: "people"}, Key: []string{"id"}}, Workers: 1,
			}
			for what, err := range map[string]error{
				"create": second(neighbours.Create(ctx, n)), "refresh": second(neighbours.Refresh(ctx, n)), "verify": second(neighbours.Verify(ctx, n)), "drop": neighbours.Drop(ctx, n),
			} {
				if err == nil {
					t.Errorf("neighbours %s: no error", what)
				}
			}
			_, _ = neighbours.Current(ctx, dsn, "dpwatch")
			_, _, _ = neighbours.List(ctx, n)
			if ctx.Err() != nil {
				t.Error("a call waits for more than the server sends")
			}
		})
	}
}

func second[T any](_ T, err error) error { return err }
