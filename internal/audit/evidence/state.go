package evidence

import (
	"bytes"
	"encoding/gob"
	"errors"
	"fmt"

	"github.com/dpwatch/dpwatch/analysis"
)

// stateVersion changes whenever the saved form does. The audits inside have a version of their own.
const stateVersion = 1

// state is the saved form.
type state struct {
	Version         int
	Audits          []*analysis.Audit
	Drifts, Earlier []*analysis.Drift
	Settled         []bool // nil before a confirmation
	Budget, Trials  int
	Failure         string
	Recorded        bool
}

// MarshalBinary saves the evidence: restored, it goes on bit for bit as if it had not been interrupted. The state holds
// values of results and needs the protection of the raw data.
func (e *Evidence) MarshalBinary() ([]byte, error) {
	s := state{
		Version: stateVersion, Audits: e.audits, Drifts: pointers(e.drifts), Earlier: pointers(e.earlier),
		Budget: e.budget, Trials: e.trials, Failure: e.failure, Recorded: e.recorded,
	}
	for i := range e.before {
		s.Settled = append(s.Settled, e.settled(i))
	}
	var b bytes.Buffer
	if err := gob.NewEncoder(&b).Encode(&s); err != nil {
		return nil, fmt.Errorf("save evidence: %w", err)
	}
	return b.Bytes(), nil
}

var errState = errors.New("restore evidence: the saved state is damaged")

// UnmarshalBinary restores what MarshalBinary saved, in place of whatever e held. Anything else gives an error and leaves e
// as it was.
func (e *Evidence) UnmarshalBinary(data []byte) error {
	var s state
	if err := gob.NewDecoder(bytes.NewReader(data)).Decode(&s); err != nil {
		return fmt.Errorf("restore evidence: %w", err)
	}
	if s.Version != stateVersion {
		return fmt.Errorf("restore evidence: it was saved in form %d, this version reads form %d", s.Version, stateVersion)
	}
	fits := func(drifts []*analysis.Drift) bool { return drifts == nil || len(drifts) == 1+len(s.Audits) }
	if len(s.Audits) == 0 || !fits(s.Drifts) || !fits(s.Earlier) || s.Settled != nil && len(s.Settled) != len(s.Audits) {
		return errState
	}
	restored := Evidence{
		audits: s.Audits, drifts: values(s.Drifts), earlier: values(s.Earlier),
		budget: s.Budget, trials: s.Trials, failure: s.Failure, recorded: s.Recorded,
	}
	if s.Settled != nil {
		restored.before = make([]*analysis.Report, len(s.Audits))
	}
	for i, settled := range s.Settled {
		if settled {
			r := restored.report(i, restored.earlier)
			restored.before[i] = &r
		}
	}
	*e = restored
	return nil
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
