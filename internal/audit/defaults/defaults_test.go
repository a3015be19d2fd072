package defaults_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/dpwatch/dpwatch/internal/audit/defaults"
	"github.com/dpwatch/dpwatch/internal/capture"
	"github.com/dpwatch/dpwatch/internal/pg/catalog"
)

// TestResolve: a session has the settings of its role and database at its beginning, and keeps them. Those that changed
// between the readings around it, or cannot be read after it, are in doubt.
func TestResolve(t *testing.T) {
	t.Parallel()
	epsilon, readings := "1", 0
	var fault error
	d := defaults.New(func(context.Context) ([]catalog.Default, error) {
		readings++
		if epsilon == "" {
			return nil, fault
		}
		return []catalog.Default{{Settings: map[string]string{"x": "all"}}, {Role: "ann", Settings: map[string]string{"dp.epsilon": epsilon}}, {Role: "bob", Settings: map[string]string{"dp.epsilon": "9"}}}, fault
	})
	resolved := func(user string, began time.Time, own map[string]string) string {
		q := d.Resolve(t.Context(), capture.Query{User: user, Began: began, Settings: own})
		text := q.Settings["dp.epsilon"] + " " + q.Settings["x"]
		if q.Doubt.Has("dp.epsilon") {
			text += "?"
		}
		return text
	}
	check := func(what, got, want string) {
		t.Helper()
		if got != want {
			t.Errorf("%s: %q, want %q", what, got, want)
		}
	}
	if q := (*defaults.Defaults)(nil).Resolve(t.Context(), capture.Query{Began: time.Now()}); q.Whole {
		t.Error("nothing is known without a catalog")
	}
	earliest := time.Now().Add(-time.Hour)
	check("before the first reading", resolved("ann", earliest, nil), "1 all")
	first := time.Now()
	check("after it", resolved("ann", first, nil), "1 all")
	check("another user", resolved("bob", first, nil), "9 all")
	check("without one", resolved("eve", first, nil), " all")
	check("its own setting", resolved("ann", first, map[string]string{"dp.epsilon": "3"}), "3 all")
	if readings != 2 {
		t.Errorf("%d readings, want 2", readings)
	}
	between := time.Now()
	epsilon = "20"
	later := time.Now()
	check("changed by now", resolved("ann", later, nil), "20 all?")
	check("another user, for whom nothing changed", resolved("bob", later, nil), "9 all")
	check("its own setting, which is certain", resolved("ann", later, map[string]string{"dp.epsilon": "3"}), "3 all")
	check("a session that began before the change", resolved("ann", first, nil), "1 all")
	check("one that began between the readings", resolved("ann", between, nil), "20 all?")
	last := time.Now()
	check("one that began after it", resolved("ann", last, nil), "20 all")
	fault = errors.New("away")
	check("one that began after the last reading", resolved("ann", time.Now(), nil), "20 all?")
	fault, epsilon = nil, ""
	check("no settings any more", resolved("ann", time.Now(), nil), " ?")
	check("none", resolved("ann", time.Now(), nil), " ")
	if q := d.Resolve(t.Context(), capture.Query{User: "ann"}); q.Whole {
		t.Error(fmt.Sprint("the beginning is not known: ", q.Settings))
	}
}
