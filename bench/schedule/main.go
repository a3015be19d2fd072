// Package schedule simulates a fleet of distinct queries with the scheduler of audits: how long a query waits for its
// first trials, and a broken one for its violation. The scheduler is the product's; arrivals, trials and evidence are
// simulated. Arrivals follow from the seed; equal audits take their turns in random order, so that figures of two runs
// differ a little.
package schedule

import (
	"context"
	"flag"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"time"

	"github.com/dpwatch/dpwatch/internal/audit/schedule"
)

type options struct {
	shapes, users, workers, places, honest, broken int
	rate, exponent, wrong                          float64
	trial, span                                    time.Duration
	seed                                           uint64
}

// Run simulates with the arguments of the command line, and prints a table in markdown.
func Run(_ context.Context, args []string) error {
	flags := flag.NewFlagSet("schedule", flag.ContinueOnError)
	var o options
	flags.IntVar(&o.shapes, "shapes", 1_000_000, "distinct queries, each with its own shape")
	flags.IntVar(&o.users, "users", 50, "users who send them")
	flags.IntVar(&o.workers, "workers", 2, "workers")
	flags.IntVar(&o.places, "places", 1000, "audit.max_audits")
	flags.IntVar(&o.honest, "honest", 10_000, "pairs of trials until an honest query is decided")
	flags.IntVar(&o.broken, "broken", 300, "pairs of trials until a broken query is decided")
	flags.Float64Var(&o.rate, "rate", 100, "executions per second")
	flags.Float64Var(&o.exponent, "exponent", 1.1, "of the Zipf law of the queries' frequencies")
	flags.Float64Var(&o.wrong, "wrong", .01, "share of the queries that are broken")
	flags.DurationVar(&o.trial, "trial", 4*time.Millisecond, "time of one pair of trials")
	flags.DurationVar(&o.span, "span", 24*time.Hour, "simulated time")
	flags.Uint64Var(&o.seed, "seed", 1, "seed")
	picture := flags.String("plot", "", "file for a plot of the waits: .svg, .png or .pdf")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if o.shapes < 2 || o.users < 1 || o.workers < 1 || o.places < 1 || o.honest < 1 || o.broken < 1 || !(o.rate > 0) || !(o.exponent > 1) || o.trial <= 0 || o.span <= 0 || !(o.wrong >= 0 && o.wrong <= 1) {
		return fmt.Errorf("-exponent must be more than 1, -wrong between 0 and 1, -shapes at least 2, and all others positive")
	}
	f := newFleet(o).simulate()
	f.print(os.Stdout)
	if *picture != "" {
		return f.plot(*picture)
	}
	return nil
}

// threshold is the evidence, in nats, of a violation of the thousandth audit of a fleet: see multiplicity.Share.
const threshold = 17

// query is one distinct query; times are zero before they come.
type query struct {
	seen                   uint64
	first, looked, decided time.Time
	broken                 bool
	pairs                  int // of its trials in all turns: evidence is kept in the ledger when its place is lost
	audit                  *schedule.Audit
}

type fleet struct {
	o          options
	queries    []query // by rank: the most frequent first
	roster     *schedule.Roster
	now, end   time.Time
	executions uint64
	audited    uint64 // executions of queries that have a place or a verdict
}

func newFleet(o options) *fleet {
	f := &fleet{o: o, queries: make([]query, o.shapes), roster: schedule.New(schedule.Limits{Audits: o.places, PerShape: 20}), now: time.Unix(0, 0)}
	f.end = f.now.Add(o.span)
	r := rand.New(rand.NewPCG(o.seed, 1))
	for i := range f.queries {
		f.queries[i].broken = r.Float64() < o.wrong
	}
	return f
}

// turn is the turn that a worker has.
type turn struct {
	query *query
	audit *schedule.Audit
	began time.Time
	until time.Time
}

func (f *fleet) simulate() *fleet {
	r := rand.New(rand.NewPCG(f.o.seed, 2))
	ranks := rand.NewZipf(r, f.o.exponent, 1, uint64(f.o.shapes-1)) //nolint:gosec // at least 1
	turns := make([]*turn, f.o.workers)
	byAudit := map[*schedule.Audit]*query{}
	arrival := f.now
	for f.now.Before(f.end) {
		next := arrival
		for i, t := range turns {
			if t == nil {
				if a, _ := f.roster.Next(f.now); a != nil {
					t = f.begin(byAudit[a], a)
					turns[i] = t
				}
			}
			if t != nil && t.until.Before(next) {
				next = t.until
			}
		}
		f.now = next
		for i, t := range turns {
			if t != nil && !t.until.After(f.now) {
				f.finish(t)
				turns[i] = nil
			}
		}
		if f.now.Equal(arrival) {
			f.arrive(int(ranks.Uint64()), byAudit) //nolint:gosec // a rank
			arrival = arrival.Add(time.Duration(r.ExpFloat64() / f.o.rate * float64(time.Second)))
		}
	}
	return f
}

// arrive takes one execution of the query of a rank.
func (f *fleet) arrive(rank int, byAudit map[*schedule.Audit]*query) {
	q := &f.queries[rank]
	q.seen++
	f.executions++
	if q.first.IsZero() {
		q.first = f.now
	}
	if q.audit != nil || !q.decided.IsZero() {
		f.audited++
		if q.audit != nil {
			q.audit.Seen++
			q.audit.LastSeen = f.now
		}
		return
	}
	key := fmt.Sprint(rank)
	seat := schedule.NewAudit(key, key, schedule.Owner{User: fmt.Sprint("user ", rank%f.o.users)})
	a := &seat
	a.Seen, a.LastSeen, a.Trials, a.Threshold, a.Tried = q.seen, f.now, q.pairs, threshold, q.pairs > 0
	evicted, refusal := f.roster.Admit(a, f.now)
	if evicted != nil {
		byAudit[evicted].audit = nil
		delete(byAudit, evicted)
	}
	if refusal != "" {
		return
	}
	f.audited++
	q.audit, byAudit[a] = a, q
}

// begin starts a turn: 50 rounds or a second at first, then 200 rounds or more until a second has passed.
func (f *fleet) begin(q *query, a *schedule.Audit) *turn {
	if q.looked.IsZero() {
		q.looked = f.now.Add(f.o.trial)
	}
	rounds := max(200, int(time.Second/f.o.trial))
	if a.Turns() <= 1 {
		rounds = max(1, min(50, int(time.Second/f.o.trial)))
	}
	need := f.o.honest
	if q.broken {
		need = f.o.broken
	}
	rounds = max(1, min(rounds, need-q.pairs))
	q.pairs += rounds
	return &turn{query: q, audit: a, began: f.now, until: f.now.Add(time.Duration(rounds) * f.o.trial)}
}

// finish ends a turn: the evidence of a broken query grows evenly.
func (f *fleet) finish(t *turn) {
	q, a := t.query, t.audit
	a.Trials, a.Wealth, a.Kept = q.pairs, -1, true
	if q.broken {
		a.Wealth = a.Threshold * float64(q.pairs) / float64(f.o.broken)
	}
	took := t.until.Sub(t.began)
	switch {
	case q.broken && q.pairs >= f.o.broken, !q.broken && q.pairs >= f.o.honest:
		q.decided = f.now
		f.roster.Decide(a, q.broken, took)
		for r := f.roster.Retire(); r != nil; r = f.roster.Retire() {
			f.roster.Reopen(r)
		}
	default:
		f.roster.Return(a, took, f.now)
	}
}

// print writes a line for each power of ten of the ranks.
func (f *fleet) print(w io.Writer) {
	o := f.o
	fmt.Fprintf(w, "%d distinct queries of %d users, %.4g executions per second (Zipf, exponent %g), %d workers, %d places, %s a pair, %d pairs for a verdict on an honest query and %d on a broken one; %s: %d executions, %.1f %% of them of queries with an audit.\n\n",
		o.shapes, o.users, o.rate, o.exponent, o.workers, o.places, o.trial, o.honest, o.broken, o.span, f.executions, 100*float64(f.audited)/float64(max(1, f.executions)))
	fmt.Fprintln(w, "| rank by frequency | seen | with a first look | wait for it: median, 90 % | broken | found | wait for the violation: median, 90 % |")
	fmt.Fprintln(w, "|---|---|---|---|---|---|---|")
	for from := 0; from < o.shapes; {
		to := min(o.shapes, max(10, 10*from))
		f.line(w, from, to)
		from = to
	}
}

func (f *fleet) line(w io.Writer, from, to int) {
	looks, finds := f.waits(from, to)
	fmt.Fprintf(w, "| %d to %d | %d | %s | %s | %d | %s | %s |\n", from+1, to, len(looks), share(looks), quantiles(looks), len(finds), share(finds), quantiles(finds))
}

// waits returns the seconds from the first execution to the first trials, of the queries of some ranks that were run,
// and to the violation, of the broken ones of these; +Inf for what has not come.
func (f *fleet) waits(from, to int) (looks, finds []float64) {
	for i := from; i < to; i++ {
		q := &f.queries[i]
		if q.first.IsZero() {
			continue
		}
		look, find := math.Inf(1), math.Inf(1)
		if !q.looked.IsZero() {
			look = q.looked.Sub(q.first).Seconds()
		}
		looks = append(looks, look)
		if !q.broken {
			continue
		}
		if !q.decided.IsZero() {
			find = q.decided.Sub(q.first).Seconds()
		}
		finds = append(finds, find)
	}
	return looks, finds
}

// share returns the finite part of waits.
func share(all []float64) string {
	n := 0
	for _, x := range all {
		if !math.IsInf(x, 1) {
			n++
		}
	}
	return fmt.Sprintf("%.1f %%", 100*float64(n)/float64(max(1, len(all))))
}

// quantiles returns the median and the 90 % quantile of waits.
func quantiles(all []float64) string {
	if len(all) == 0 {
		return "-"
	}
	slices.Sort(all)
	text := func(x float64) string {
		if math.IsInf(x, 1) {
			return "never"
		}
		return time.Duration(x * float64(time.Second)).Round(10 * time.Millisecond).String()
	}
	return text(all[len(all)/2]) + ", " + text(all[len(all)*9/10])
}
