package audit_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/dpwatch/dpwatch/internal/audit"
	"github.com/dpwatch/dpwatch/internal/audit/step"
	"github.com/dpwatch/dpwatch/internal/audit/view"
	"github.com/dpwatch/dpwatch/internal/eventually"
	"github.com/dpwatch/dpwatch/internal/pgtemp/pgtest"
)

// displaced is a rig with two places, whose ledger has the evidence of an audit that lost its place to a new query's.
type displaced struct {
	*ledgerRig
	id, text string // of that audit, and its query's
	conn     *pgx.Conn
}

func newDisplaced(t *testing.T, change func(*audit.Options)) *displaced {
	t.Helper()
	d := &displaced{ledgerRig: newLedgerRig(t, func(o *audit.Options) {
		o.MaxAudits, o.Workers, o.TurnTrials, o.Analysis.MaxTrials = 2, 1, 1, 1_000_000
		if change != nil {
			change(o)
		}
	})}
	t.Cleanup(d.begin(t))
	text := func(more string) string {
		return fmt.Sprintf("SELECT noisy(count(*), 4)%s FROM people /*dp_epsilon='0.5'*/", more)
	}
	texts := map[string]string{} // by id
	for _, more := range []string{"", ", max(id)"} {
		before := d.trials()
		d.Submit(query(text(more)))
		id := ""
		for one := range d.trials() {
			if _, there := before[one]; !there {
				id = one
			}
		}
		texts[id] = text(more)
		eventually.True(t, "first trials of "+text(more), func() bool { return d.trials()[id] > 0 })
	}
	eventually.True(t, "a place for the third query", func() bool {
		d.Submit(query(text(", max(grp)")))
		return d.Status().Evicted["place"] == 1
	})
	for id, text := range texts {
		if _, there := d.trials()[id]; !there {
			d.id, d.text = id, text
		}
	}
	d.conn = pgtest.Connect(t, d.ledger.DSN)
	return d
}

// trials returns the trials of the audits that have a place, by id.
func (d *displaced) trials() map[string]int {
	out := map[string]int{}
	for _, e := range d.Status().Audits {
		out[e.ID] = e.Report.Trials.D0
	}
	return out
}

// row is what the ledger has of an audit.
type row struct {
	Trials, Processes, Bytes int
	State, Verdict           string
}

// stored returns what the ledger has of the displaced audit.
func (d *displaced) stored(t *testing.T) (r row) {
	t.Helper()
	if err := d.conn.QueryRow(t.Context(), `SELECT trials, processes, coalesce(length(progress), 0), state, verdict
		FROM dpwatch_ledger.audits a JOIN dpwatch_ledger.queries q ON q.id = a.query WHERE starts_with(q.key, $1)`, d.id).Scan(&r.Trials, &r.Processes, &r.Bytes, &r.State, &r.Verdict); err != nil {
		t.Fatal(err)
	}
	return r
}

// goesOn runs the query of the displaced audit until the audit has more trials than before, and checks that its
// evidence began once.
func (d *displaced) goesOn(t *testing.T, before row) {
	t.Helper()
	eventually.True(t, "the audit goes on", func() bool {
		d.Submit(query(d.text))
		return d.trials()[d.id] > before.Trials
	}, func() any { return d.Status() })
	if r := d.stored(t); r.Processes != 1 {
		t.Errorf("its evidence began %d times", r.Processes)
	}
}

// TestPlaceIsGivenAway: with a ledger, an audit that has begun gives its place to a new query's, and goes on with its
// evidence when it has a place again.
func TestPlaceIsGivenAway(t *testing.T) {
	t.Parallel()
	d := newDisplaced(t, nil)
	before := d.stored(t)
	if before.Trials == 0 || before.Processes != 1 {
		t.Fatalf("the ledger has %d trials of the audit that lost its place, %d beginnings", before.Trials, before.Processes)
	}
	d.goesOn(t, before)
}

// faultyPlayer is a Player whose Epoch fails or panics.
type faultyPlayer struct {
	step.Player
	down   atomic.Bool
	panics atomic.Int64 // how often it still panics
}

func (p *faultyPlayer) Epoch(ctx context.Context, schemas []string) (string, error) {
	if p.panics.Add(-1) >= 0 {
		panic("planted")
	}
	if p.down.Load() {
		return "", errors.New("connection refused")
	}
	return p.Player.Epoch(ctx, schemas)
}

// TestFaultWhileRecalled: a shadow database that is away, or a panic, while an audit that had lost its place is
// recalled leaves its evidence in the ledger as it is.
func TestFaultWhileRecalled(t *testing.T) {
	t.Parallel()
	for name, panics := range map[string]bool{"shadow database away": false, "panic": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := &faultyPlayer{}
			d := newDisplaced(t, func(o *audit.Options) {
				p.Player, o.Player = o.Player, p
				o.EpochEvery = time.Hour // turns alone read the epoch
			})
			before := d.stored(t)
			want := view.Waiting
			if panics {
				want = view.Decided
				p.panics.Store(1 << 40)
			}
			p.down.Store(true)
			var e view.Entry
			eventually.True(t, "a turn of the audit", func() bool {
				d.Submit(query(d.text))
				for _, one := range d.Status().Audits {
					if one.ID == d.id {
						e = one
					}
				}
				return e.Trouble != ""
			}, func() any { return d.Status() })
			if e.State != want {
				t.Fatalf("the audit is %s (%s), want %s", e.State, e.Trouble, want)
			}
			eventually.True(t, "everything is written", func() bool { return d.Status().Ledger.Unsaved == 0 })
			if diff := cmp.Diff(before, d.stored(t)); diff != "" {
				t.Errorf("in the ledger: %s", diff)
			}
			p.down.Store(false)
			p.panics.Store(0)
			if panics { // another process tries again
				return
			}
			d.goesOn(t, before)
		})
	}
}
