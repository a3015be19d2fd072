package evidence

import (
	"bytes"
	"encoding/gob"
	"errors"
	"fmt"

	"github.com/dpwatch/dpwatch/analysis"
)

// stateVersion changes whenever the saved form does. The audits inside have a version of their own.
const stateVersion = 5

// state is the saved form.
type state struct {
	Version        int
	Audits         []*analysis.Audit
	Drifts         []*analysis.Drift
	Earlier        []*analysis.Drift // before the confirmation
	Between        []*analysis.Drift // of the confirmation
	Settled        []bool            // nil before a confirmation
	NotMeasured    []bool            // nil before a measurement
	Budget, Trials int
	Failure        string
	Recorded       bool
	ReadsProven    bool   // false = this is verified before further trials
	Unverified     string // see Evidence.SetReads
	Beside         string // see Evidence.SetReads
	Unlike         string // see Evidence.SetUnlike
	Streams        streamsState
	Control        *control      // nil = none has begun
	Unconfirmed    []Unconfirmed // nil = none
}

// streamsState is the saved form of streams.
type streamsState struct {
	Claim            analysis.Claim
	Options          analysis.Options
	Opening, Hoisted streamState
	Laws             []*analysis.Audit
	Aside            map[int]aside
}

// streamState is the saved form of a stream.
type streamState struct {
	Share   float64
	Audits  []*analysis.Audit
	Refuted string
}

func (s *streams) state() streamsState {
	of := func(x *stream) streamState { return streamState{x.share, x.audits, x.refuted} }
	return streamsState{s.claim, s.opt, of(&s.opening), of(&s.hoisted), s.laws, s.aside}
}

func (s *streamsState) streams() streams {
	of := func(x *streamState) stream { return stream{x.Share, x.Audits, x.Refuted} }
	return streams{s.Claim, s.Options, of(&s.Opening), of(&s.Hoisted), s.Laws, s.Aside}
}

// fits reports whether the parts belong to evidence on so many neighbours.
func (s *streamsState) fits(neighbours int, confirming bool) bool {
	for _, x := range []*streamState{&s.Opening, &s.Hoisted} {
		if len(x.Audits) != 0 && len(x.Audits) != neighbours || !(x.Share >= 0 && x.Share < 1) {
			return false
		}
	}
	for i, x := range s.Aside {
		if i < 0 || i >= neighbours || !confirming || x.Audit == nil || x.By > Hoisted {
			return false
		}
	}
	return len(s.Laws) == 0 && len(s.Hoisted.Audits) == 0 || len(s.Laws) == 1+neighbours
}

// MarshalBinary saves the evidence: restored, it goes on bit for bit as if it had not been interrupted. The state holds
// values of results and needs the protection of the raw data.
func (e *Evidence) MarshalBinary() ([]byte, error) {
	s := state{
		Version: stateVersion, Audits: e.audits, Drifts: pointers(e.drifts), Earlier: pointers(e.earlier),
		Between: pointers(e.between), Budget: e.budget, Trials: e.trials, Failure: e.failure, Recorded: e.recorded,
		Streams: e.streams.state(), ReadsProven: e.readsKnown, Unverified: e.unverified, Beside: e.beside, Unlike: e.unlike, Unconfirmed: e.unconfirmed,
		Control: e.control,
	}
	for _, r := range e.before {
		s.Settled = append(s.Settled, r != nil)
	}
	for _, r := range e.measured {
		s.NotMeasured = append(s.NotMeasured, r != nil)
	}
	var b bytes.Buffer
	if err := gob.NewEncoder(&b).Encode(&s); err != nil {
		return nil, fmt.Errorf("save evidence: %w", err)
	}
	return b.Bytes(), nil
}

var errState = errors.New("restore evidence: the saved state is damaged")

// UnmarshalBinary restores what MarshalBinary saved, in place of whatever e held. Anything else gives an error and
// leaves e as it was.
func (e *Evidence) UnmarshalBinary(data []byte) error {
	var s state
	if err := gob.NewDecoder(bytes.NewReader(data)).Decode(&s); err != nil {
		return fmt.Errorf("restore evidence: %w", err)
	}
	if s.Version != stateVersion {
		return fmt.Errorf("restore evidence: it was saved in form %d, this version reads form %d", s.Version, stateVersion)
	}
	fits := func(drifts []*analysis.Drift) bool { return drifts == nil || len(drifts) == 1+len(s.Audits) }
	if len(s.Audits) == 0 || !fits(s.Drifts) || !fits(s.Earlier) || !fits(s.Between) ||
		s.Settled != nil && len(s.Settled) != len(s.Audits) || s.NotMeasured != nil && len(s.NotMeasured) != len(s.Audits) || s.Unconfirmed != nil && len(s.Unconfirmed) != len(s.Audits) {
		return errState
	}
	if !s.Streams.fits(len(s.Audits), s.Settled != nil) || s.Control != nil && s.Control.Audit == nil {
		return errState
	}
	restored := Evidence{
		audits: s.Audits, budget: s.Budget, streams: s.Streams.streams(),
		observed: observed{drifts: values(s.Drifts), trials: s.Trials, failure: s.Failure, recorded: s.Recorded, readsKnown: s.ReadsProven, unverified: s.Unverified, beside: s.Beside, unlike: s.Unlike},
		phases:   phases{earlier: values(s.Earlier), between: values(s.Between), unconfirmed: s.Unconfirmed, control: s.Control},
	}
	if s.Settled != nil && restored.aside == nil {
		restored.aside = map[int]aside{} // an empty map has no form
	}
	restored.before = restored.reports(s.Settled, restored.earlier)
	restored.measured = restored.reports(s.NotMeasured, restored.between)
	for i, r := range restored.measured {
		if r != nil {
			*r = restored.withControl(*r, i)
		}
	}
	*e = restored
	return nil
}

// reports returns the reports of the marked neighbours during whose trials the worlds drifted as given; nil without
// marks.
func (e *Evidence) reports(marked []bool, drifts []analysis.Drift) []*analysis.Report {
	if marked == nil {
		return nil
	}
	all := make([]*analysis.Report, len(marked))
	for i, m := range marked {
		if m {
			r := e.report(i, drifts)
			all[i] = &r
		}
	}
	return all
}

func pointers(drifts []analysis.Drift) []*analysis.Drift {
	var all []*analysis.Drift
	for i := range drifts {
		all = append(all, &drifts[i])
	}
	return all
}

func values(drifts []*analysis.Drift) []analysis.Drift {
	var all []analysis.Drift
	for _, d := range drifts {
		all = append(all, *d)
	}
	return all
}
