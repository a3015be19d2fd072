package desk

import (
	"time"

	"github.com/dpwatch/dpwatch/internal/audit/schedule"
	"github.com/dpwatch/dpwatch/internal/audit/view"
)

// maxSeries bounds the number of audits with series of their own, except violations, which always have series.
const maxSeries = 100

// Figures are what metrics show of all audits.
type Figures struct {
	States          map[view.State]int
	Violations      int // with records
	Accepted        int // of them
	Watched         int
	FalseAlarms     view.FalseAlarms
	Oldest, Untried time.Time // since when the oldest waiting audit waits, and the oldest without a trial; zero = none waits
	ShadowUp        bool
	LastTrial       time.Time
	Bytes           int64
	Queries         float64  // of the coverage
	Share           *float64 // of the coverage; nil without queries
	Series          []Series
}

// Series are the figures of one audit, or of the record of one.
type Series struct {
	ID             string
	Lower, Claimed float64
	Audit          bool // no record: it has the figures below
	Delta          float64
	SpeedUp        float64
	Tables         int
}

// Figures returns the present figures.
func (o *Overview) Figures() Figures {
	f := Figures{
		States: map[view.State]int{}, Violations: len(o.places.records.order), Accepted: o.acceptedViolations(),
		ShadowUp: o.shadowUp, LastTrial: o.lastTrial, Bytes: o.roster.Bytes(), Series: o.series(), FalseAlarms: o.controls.FalseAlarms(),
	}
	f.Queries, f.Share = o.counts.covered()
	earlier := func(t *time.Time, since time.Time) {
		if t.IsZero() || since.Before(*t) {
			*t = since
		}
	}
	for _, j := range o.order {
		f.States[j.state()]++
		if j.Watched {
			f.Watched++
		}
		if j.violates() {
			f.Violations++
		}
		if j.Phase() != schedule.Queued || o.opt.Observe || j.Background { // a repetition waits for its share
			continue
		}
		earlier(&f.Oldest, j.Since())
		if j.Trials == 0 {
			earlier(&f.Untried, j.Since())
		}
	}
	return f
}

// series returns the series of audits and records, one for each id.
func (o *Overview) series() (all []Series) {
	taken := map[string]bool{} // ids are truncated hashes, and two series with one name would make all metrics fail
	for _, c := range o.places.records.order {
		if !taken[c.ID] {
			taken[c.ID] = true
			all = append(all, Series{ID: c.ID, Lower: float64(c.Lower), Claimed: float64(c.Claimed)})
		}
	}
	for _, j := range o.withSeries() {
		if taken[j.id] {
			continue
		}
		taken[j.id] = true
		r := j.worst()
		if s := j.violation(); s != nil {
			r.EpsilonLower = s.Lower
		}
		s := Series{ID: j.id, Audit: true, Lower: float64(r.EpsilonLower), Claimed: float64(r.Claimed.Epsilon), Delta: r.Claimed.Delta, SpeedUp: 1}
		if h := j.hoisting; h != nil && h.Hoisted {
			s.SpeedUp, s.Tables = h.SpeedUp, h.Pieces
		}
		all = append(all, s)
	}
	return all
}

// withSeries returns the audits that have series of their own: all violations, and the first of the other audits that
// have begun.
func (o *Overview) withSeries() []*job {
	var violations, others []*job
	for _, j := range o.order {
		switch {
		case j.violates() || j.worst().DetectedAt != nil:
			violations = append(violations, j)
		case j.Trials > 0 || j.Phase() == schedule.Decided:
			others = append(others, j)
		}
	}
	return append(violations, others[:min(len(others), max(0, maxSeries-len(violations)))]...)
}

// acceptedViolations returns how many of the violations in memory are accepted.
func (o *Overview) acceptedViolations() (n int) {
	for key := range o.acceptances.accepted {
		j := o.jobs[key]
		if (o.places.records.byKey[key] != nil || j != nil && j.violates()) && o.acceptances.acceptance(key) != nil {
			n++
		}
	}
	return n
}
