package demo

import (
	"os"
	"slices"
	"testing"

	"github.com/dpwatch/dpwatch/config"
	"github.com/dpwatch/dpwatch/internal/app/stages"
	"github.com/dpwatch/dpwatch/internal/pgtemp/pgtest"
	"github.com/dpwatch/dpwatch/internal/showcase"
	"github.com/dpwatch/dpwatch/replay/neighbours"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// TestCopies: the copies of the demo's configuration are neighbours, and D1 is without the heavy user, on whom the
// planted verdicts depend.
func TestCopies(t *testing.T) {
	t.Parallel()
	cluster := pgtest.Start(t)
	secrets := showcase.Options{AppPassword: "app", ReplayPassword: "replay"}
	if err := setUp(t.Context(), cluster, secrets); err != nil {
		t.Fatal(err)
	}
	text, err := configuration(cluster, Options{Listen: "127.0.0.1:0", Admin: "127.0.0.1:0", MaxTrials: 900}, secrets, "")
	if err != nil {
		t.Fatal(err)
	}
	c, _, err := config.ParseAndCheck("demo", text, os.Getenv)
	if err != nil {
		t.Fatal(err)
	}
	if err := makeCopies(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	o, err := stages.NeighbourOptions(c)
	if err != nil {
		t.Fatal(err)
	}
	verified, err := neighbours.Verify(t.Context(), o)
	if err != nil || !verified.OK() || verified.NotCompared != "" || len(verified.Pairs) != 1 {
		t.Fatalf("%+v, %v", verified, err)
	}
	removed := int64(0)
	for _, n := range verified.Pairs[0].Removed {
		removed += n
	}
	_, members, err := neighbours.List(t.Context(), o)
	if err != nil || len(members) != 1 || !slices.Equal(members[0].Key, []string{"0"}) || removed != 1+showcase.HeavyRows {
		t.Errorf("%d rows removed, of %+v, %v; want the heavy user's", removed, members, err)
	}
}

// TestOrder: the client first sends what is not audited, then the query with the quickest verdict.
func TestOrder(t *testing.T) {
	t.Parallel()
	var audited []string
	for i, q := range firstMinute(showcase.Queries()) {
		if q.WantVerdict != "" {
			audited = append(audited, q.Name)
		} else if i >= len(showcase.Ordinary()) {
			t.Errorf("%s is sent after audited queries", q.Name)
		}
	}
	if !slices.Equal(audited, inFirstMinute) {
		t.Errorf("%q, want %q", audited, inFirstMinute)
	}
}
