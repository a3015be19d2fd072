package oneoff

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/dpwatch/dpwatch/analysis"
	"github.com/dpwatch/dpwatch/internal/app/stages"
	"github.com/dpwatch/dpwatch/internal/audit/evidence"
	"github.com/dpwatch/dpwatch/internal/audit/step"
	"github.com/dpwatch/dpwatch/internal/read"
	"github.com/dpwatch/dpwatch/replay"
	"github.com/dpwatch/dpwatch/replay/neighbours"
)

const (
	// shrinkAttempts bounds the audits of smaller copies. Each has this part of the error rate, so that with the audit's
	// confidence none of the copies that are kept lacks a violation.
	shrinkAttempts = 300
	// shrinkSlack times the pairs that the first audit would have needed at that error rate are those of an attempt.
	shrinkSlack = 3
	// leastShrinkPairs is the least number of pairs of an attempt.
	leastShrinkPairs = 100
	// shrinkBegins bounds the attempts with all rows: trials of a violation may show none by chance.
	shrinkBegins = 3
	// shrinkAudits bounds the audits at the end, which share the error rate: two of the smallest copies and, if these find
	// no violation, two of the copies before. An audit of a violation may end without one by chance.
	shrinkAudits = 4
)

// shrinkable returns why smaller copies cannot be made.
func (f *question) shrinkable() error {
	switch {
	case f.Recreate:
		return errors.New("--shrink looks for smaller copies that stay, and --recreate makes the copies anew for each pair of trials: give only one of the two")
	case f.captured != nil:
		return errors.New("--shrink is for dpwatch audit")
	}
	return f.copyable("--shrink")
}

// shrunk adds the smallest copies that are found to the conclusion of an audit. A fault is a warning, as the verdict is
// that of the audit.
func (f *audit) shrunk(ctx context.Context, c read.Conclusion) read.Conclusion {
	if c.Verdict != analysis.Violation {
		c.Shrunk = &read.Shrunk{State: read.NoViolation, Withheld: !f.ShowRows, Schemas: []string{}, Tables: []read.ShrunkTable{}}
		return c
	}
	if f.env.Removes != nil {
		f.env.Removes()
	}
	s := &shrinking{audit: f, first: c.Report, d1: c.Neighbour}
	s.found = read.Shrunk{Withheld: !f.ShowRows, Schemas: []string{}, Tables: []read.ShrunkTable{}}
	if err := s.search(ctx); err != nil {
		if ctx.Err() == nil {
			fmt.Fprintln(f.env.Stderr, "dpwatch: warning: smaller copies:", err)
		}
		s.found.State = read.ShrinkStopped
	}
	c.Shrunk = &s.found
	if c.Issue != nil {
		c.Issue.Shrunk = c.Shrunk
	}
	return c
}

// shrinking is a search for smaller copies: delta debugging (Zeller and Hildebrandt 2002) with complements alone. Parts
// of the rows are taken away, first halves, then smaller ones, from D0 and D1 alike; a part stays away if the violation
// shows without it.
type shrinking struct {
	*audit
	first analysis.Report
	d1    string // schema of the neighbour

	anew   *neighbours.Recreation
	part   *neighbours.Part
	world  int // index of the neighbour
	found  read.Shrunk
	before [][2]int64 // rows of the tables
	kinds  kinds      // of the answers on all rows
	kept   []kept
	why    string // the last attempt did not show the violation
	shown  int64  // rows in the last line about the progress; 0 = there is none
}

// kept is a pair of copies on which the first trials of an audit show the violation.
type kept struct {
	schemas []string
	rows    [][2]int64
	script  []string
}

// search looks for the smallest copies and audits them.
func (s *shrinking) search(ctx context.Context) error {
	o, err := stages.NeighbourOptions(*s.config)
	if err != nil {
		return err
	}
	_, members, err := neighbours.List(ctx, o)
	if err != nil {
		return err
	}
	s.world = slices.Index(o.D1, s.d1)
	if s.anew, err = neighbours.OpenRecreation(ctx, o, []int{neighbours.AllRows, s.world}, 0); err != nil {
		return err
	}
	defer closeRecreation(ctx, s.env, s.anew)
	if err := sameUnit(members, s.anew, s.world, s.d1); err != nil {
		return err
	}
	if s.part, err = s.anew.Part(ctx, s.world); err != nil {
		return err
	}
	if err := s.budget(); err != nil {
		return err
	}
	s.progress.Begin("shrinking", shrinkAttempts)
	defer s.progress.End()
	for range shrinkBegins { // with all rows
		shown, err := s.attempt(ctx)
		if err != nil {
			return err
		}
		if !shown {
			continue
		}
		if err := s.reduce(ctx); err != nil {
			return err
		}
		return s.confirm(ctx)
	}
	s.found.State, s.found.Reason = read.NotShownAgain, s.why
	return nil
}

// budget sets the number of pairs of trials of an attempt: as many as the first audit would have needed at the error
// rate of an attempt, with slack.
func (s *shrinking) budget() error {
	needed := s.first.Trials.D0
	if s.first.DetectedAt != nil {
		needed = *s.first.DetectedAt
	}
	alpha := 1 - s.Confidence
	s.found.MaxPairs = max(leastShrinkPairs, int(math.Ceil(shrinkSlack*float64(needed)*math.Log(shrinkAttempts/alpha)/math.Log(1/alpha))))
	_, err := s.evidence(s.statement)
	var infeasible *analysis.InfeasibleError
	if errors.As(err, &infeasible) {
		s.found.MaxPairs, err = shrinkSlack*infeasible.Pairs, nil
	}
	return err
}

// evidence returns the empty evidence of an attempt, which has one neighbour.
func (s *shrinking) evidence(q replay.Statement) (*evidence.Evidence, error) {
	opt := s.analysisOptions()
	opt.MaxTrials, opt.Confidence = s.found.MaxPairs, 1-(1-s.Confidence)/shrinkAttempts
	q.Worlds = q.Worlds[:2]
	return step.Evidence(s.claimed(), opt, q)
}

// reduce takes parts of the rows away as long as that leaves the violation.
func (s *shrinking) reduce(ctx context.Context) error {
	all, own, err := s.part.Rows(ctx)
	if err != nil {
		return err
	}
	size := all - own // first everything but the unit's rows
	if size == 0 {
		size = max(1, all/2)
	}
	for {
		before := all
		for from := int64(0); from < all; {
			if s.found.Attempts == shrinkAttempts {
				return nil
			}
			taken, err := s.without(ctx, from, from+size)
			if err != nil {
				return err
			}
			if !taken {
				from += size
				continue
			}
			left, _, err := s.part.Rows(ctx)
			if err != nil {
				return err
			}
			if 2*left <= s.shown || s.shown == 0 {
				s.shown = left
				s.progress.End() // the bar is drawn again after this line
				fmt.Fprintf(s.env.Stderr, "dpwatch: smaller copies: %d of %d rows of D0 left after %d attempts\n", left, s.total(), s.found.Attempts)
			}
			if all = left; size >= all {
				break
			}
		}
		if size == 1 && all == before { // no row can be taken away alone
			return nil
		}
		size = max(1, min(size, all)/2)
	}
}

// total returns the number of rows of D0 before.
func (s *shrinking) total() (n int64) {
	for _, rows := range s.before {
		n += rows[0]
	}
	return n
}

// without reports whether the violation shows without the rows from a place to before another. If so, they stay away.
func (s *shrinking) without(ctx context.Context, from, to int64) (bool, error) {
	if ok, err := s.part.Without(ctx, from, to); err != nil || !ok {
		return false, err
	}
	ok, err := s.attempt(ctx)
	if err == nil && ok {
		s.part.Keep()
		return true, nil
	}
	return false, errors.Join(err, s.part.Undo(ctx))
}

// attempt makes copies of the candidate and reports whether first trials show the violation on them. If they do, it
// keeps what is reported of them.
func (s *shrinking) attempt(ctx context.Context) (bool, error) {
	s.found.Attempts++
	s.progress.Add(1)
	schemas, err := s.anew.Make(ctx)
	if err != nil {
		return false, undoes(err)
	}
	ok, err := s.shows(ctx, schemas)
	if err == nil && ok {
		err = s.describe(ctx, schemas)
	}
	if ctx.Err() == nil { // otherwise everything is removed at the end
		err = errors.Join(err, s.anew.Drop(ctx, schemas))
	}
	return ok && err == nil, err
}

// shows reports whether first trials show a violation on the copies in these schemas, and no answers without a value
// where there are none on all rows.
func (s *shrinking) shows(ctx context.Context, schemas []string) (bool, error) {
	on, err := s.on(schemas)
	if err != nil {
		return false, err
	}
	var seen kinds
	a := step.Audit{Statement: on.statement, Hoist: on.statement.Hoist}
	if a.Evidence, err = s.evidence(on.statement); err != nil {
		return false, undoes(err)
	}
	alone := step.Alone{Played: func(b replay.Batch) {
		s.found.Pairs += len(b.Rounds)
		for _, round := range b.All() {
			seen.add(round, b.Spared)
		}
	}}
	a, found, err := alone.Step(ctx, on.player, a)
	if err != nil || !slices.ContainsFunc(found, func(f step.Finding) bool { return f.Kind == step.Suspected }) {
		var reads *replay.ReadsError
		if s.why = ""; errors.As(err, &reads) {
			s.why = reads.Error()
		} else if err == nil {
			s.why = a.Evidence.Report(0).Reason
		}
		return false, undoes(err)
	}
	if s.before == nil {
		s.kinds = seen
	}
	return seen.within(&s.kinds), nil
}

// on returns the audit on copies in schemas: D0, D1, and the twin if there are three.
func (s *shrinking) on(schemas []string) (*audit, error) {
	f, r := *s.audit, *s.rewritten
	f.rewritten, f.copies = &r, nil
	f.Given = map[string]bool{"d0": true} // no copies are made anew beside these
	f.D0, f.D1, f.Twin, f.Plot, f.Issue, f.Timing, f.Measure = schemas[0], schemas[1:2], "", "", false, 0, 0
	w, err := onSchemas(f.statement, f.plans, schemas, 2, false)
	if err != nil {
		return nil, err
	}
	if f.statement, f.twin = w.Statement, w.Twin; len(schemas) > 2 {
		f.Twin = schemas[2]
	}
	if f.statement.Hoist != nil {
		f.statement.Hoist = replay.NewHoisting(stages.NoiseFunctions(*f.config))
	}
	player, err := replay.New(f.replayOptions())
	if err != nil {
		return nil, err
	}
	f.player = step.Replays(player)
	return &f, nil
}

// describe keeps the numbers of rows of copies and, where values are shown, what makes them.
func (s *shrinking) describe(ctx context.Context, schemas []string) error {
	k := kept{schemas: schemas}
	d0, err := s.anew.Count(ctx, schemas[0])
	if err != nil {
		return err
	}
	d1, err := s.anew.Count(ctx, schemas[1])
	if err != nil {
		return err
	}
	var all int64
	for i := range d0 {
		k.rows, all = append(k.rows, [2]int64{d0[i], d1[i]}), all+d0[i]
	}
	if s.ShowRows && all <= read.MaxShownRows {
		queries := []string{s.statement.Worlds[0]}
		for _, next := range s.statement.Then {
			queries = append(queries, next.Worlds[0])
		}
		for i, name := range []string{s.D0, s.d1} {
			script, err := s.anew.Script(ctx, schemas[i], name, queries)
			if err != nil {
				return err
			}
			k.script = append(k.script, script...)
		}
	}
	if s.before == nil {
		s.before = k.rows
	}
	s.kept = append(s.kept, k)
	s.report(k)
	return nil
}

// report makes a pair the one that is reported.
func (s *shrinking) report(k kept) {
	s.found.Schemas, s.found.Script, s.found.Tables = k.schemas, k.script, nil
	for i, name := range s.anew.Tables() {
		s.found.Tables = append(s.found.Tables, read.ShrunkTable{Table: name, Before: s.before[i], After: k.rows[i]})
	}
}

// confirm audits the smallest pair, with a twin and a confirmation, and if there is no violation the pair before it.
func (s *shrinking) confirm(ctx context.Context) error {
	s.found.State = read.NotSmaller
	for i := range shrinkAudits {
		if len(s.kept) < 2 { // the first has all rows
			return nil
		}
		c, err := s.again(ctx)
		if err != nil {
			return err
		}
		if c.Verdict == analysis.Violation {
			if s.found.State = read.Shrunken; c.HasBound() {
				s.found.Lower, s.found.Claimed = &c.EpsilonLower, c.Claimed.Epsilon
			}
			return nil
		}
		if s.found.State = read.NotConfirmed; i%2 == 0 {
			continue
		}
		s.kept = s.kept[:len(s.kept)-1]
		s.part.Back()
		s.report(s.kept[len(s.kept)-1])
	}
	return nil
}

// again audits new copies of the present part.
func (s *shrinking) again(ctx context.Context) (c read.Conclusion, err error) {
	schemas, err := s.anew.Make(ctx, neighbours.AllRows, s.world, neighbours.AllRows)
	if err != nil {
		return c, err
	}
	defer func() { err = errors.Join(err, s.anew.Drop(ctx, schemas)) }()
	f, err := s.on(schemas)
	if err != nil {
		return c, err
	}
	f.Confidence = 1 - (1-f.Confidence)/shrinkAudits
	return f.run(ctx)
}
