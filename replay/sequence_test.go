package replay_test

import (
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dpwatch/dpwatch/internal/capture"
	"github.com/dpwatch/dpwatch/replay"
)

// sequenceOf returns the statements with the given texts, in which %s is the world's schema.
func sequenceOf(texts ...string) replay.Statement {
	worlds := func(text string) (w []string) {
		for _, schema := range []string{"d0", "d1"} {
			w = append(w, strings.ReplaceAll(text, "%s", schema))
		}
		return w
	}
	s := replay.Statement{Worlds: worlds(texts[0]), Separate: &replay.Separation{}}
	for _, text := range texts[1:] {
		s.Then = append(s.Then, replay.Step{Worlds: worlds(text)})
	}
	return s
}

// The statements of a sequence run in their order in one session, which no other trial uses.
func TestSequence(t *testing.T) {
	t.Parallel()
	const count = "SELECT set_config('app.steps', coalesce(current_setting('app.steps', true), '') || '%d', false) AS steps, pg_backend_pid() AS pid"
	number := func(i int) string { return strings.Replace(count, "%d", strconv.Itoa(i), 1) }
	for _, simple := range []bool{false, true} {
		for _, vary := range []bool{false, true} {
			s := sequenceOf(number(1), number(2), "SELECT $1::int + 0 AS given, '%s' AS world, current_query() LIKE '/*%' AS varied FROM %s.people LIMIT 1")
			s.Separate.VaryText = vary
			s.Then[1].Params = []capture.Param{{Value: []byte("41")}}
			s.Simple, s.Then[0].Simple = simple, simple
			run, err := player(t, options(shadow(t))).Start(s, 1)
			if err != nil {
				t.Fatal(err)
			}
			defer run.Close()
			rounds, err := run.Rounds(t.Context(), 4)
			if err != nil {
				t.Fatal(err)
			}
			for _, round := range rounds {
				for w, o := range round {
					if len(o.Rows) != 1 || len(o.Rows[0]) != 7 {
						t.Fatalf("world %d: %+v, want one row of 7 values", w, o)
					}
					row := o.Rows[0]
					if row[0].Text != "1" || row[2].Text != "12" || row[1] != row[3] {
						t.Errorf("world %d: %+v, want steps 1 and 12 of one session", w, row)
					}
					if row[4].Num != 41 || row[5].Text != []string{"d0", "d1"}[w] || (row[6].Num == 1) != vary {
						t.Errorf("world %d, vary %t: %+v", w, vary, row)
					}
				}
			}
		}
	}
}

// A failure ends the trial and is its outcome.
func TestSequenceFailure(t *testing.T) {
	t.Parallel()
	opt := options(shadow(t))
	opt.MaxRows = 100
	for _, c := range []struct{ second, want, message string }{
		{"SELECT 1 / 0 FROM %s.people", "22012", "division by zero\nVERROR\nC22012"},
		{"SELECT 1 FROM %s.people, generate_series(1, 101)", replay.TooLarge, ""},
		{"SELECT 1 FROM generate_series(1, 100)", replay.TooLarge, ""}, // with the row of the others
	} {
		run, err := player(t, opt).Start(sequenceOf("SELECT count(*) FROM %s.people", c.second, "SELECT 1"), 1)
		if err != nil {
			t.Fatal(err)
		}
		rounds, err := run.Rounds(t.Context(), 2)
		run.Close()
		if err != nil {
			t.Fatal(err)
		}
		for _, round := range rounds {
			for w := range round {
				if o := &round[w]; o.SQLState == replay.TooLarge && strings.Contains(o.Message, " rows, ") {
					o.Message = "" // how much there was
				}
			}
			want := replay.Round{{SQLState: c.want, Message: c.message}, {SQLState: c.want, Message: c.message}}
			if diff := cmp.Diff(want, round); diff != "" {
				t.Errorf("%s (-want +got):\n%s", c.second, diff)
			}
		}
	}
}

func TestSequenceRefused(t *testing.T) {
	t.Parallel()
	together, short, simple := sequenceOf("SELECT 1", "SELECT 2"), sequenceOf("SELECT 1", "SELECT 2"), sequenceOf("SELECT 1", "SELECT $1::int")
	together.Separate = nil
	short.Then[0].Worlds = short.Then[0].Worlds[:1]
	simple.Then[0].Simple, simple.Then[0].Params = true, []capture.Param{{Value: []byte("1")}}
	for want, s := range map[string]replay.Statement{"its own session": together, "every world": short, "has parameters": simple} {
		if _, err := player(t, options(shadow(t))).Start(s, 1); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want one with %q", err, want)
		}
	}
}
