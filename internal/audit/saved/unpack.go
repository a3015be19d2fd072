package saved

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/dpwatch/dpwatch/analysis"
	"github.com/dpwatch/dpwatch/internal/audit/evidence"
	"github.com/dpwatch/dpwatch/internal/ledger"
)

// ErrNeighbours is the error of evidence that compares other neighbours than the configuration has.
var ErrNeighbours = errors.New("the audit compared other neighbours than shadow.d1 lists now")

// Unpack decodes the progress in the ledger. The evidence is nil if the audit was decided without any.
func Unpack(row *ledger.Audit, neighbours []string) (*Progress, *evidence.Evidence, error) {
	p, err := Decode(row)
	switch {
	case err != nil:
		return nil, nil, err
	case len(p.Evidence) == 0 && !p.Decided:
		return nil, nil, fmt.Errorf("the stored progress has no evidence")
	case len(p.Evidence) == 0:
		return p, nil, nil
	case !slices.Equal(p.Neighbours, neighbours):
		return nil, nil, ErrNeighbours
	}
	return p.withEvidence()
}

// ProfilesOf returns the profiles of the findings of reports; nil where there is none.
func ProfilesOf(reports []analysis.Report) (all [][]analysis.ProfilePoint) {
	for i := range reports {
		var profile []analysis.ProfilePoint
		if f := reports[i].Finding; f != nil {
			profile = f.HowBad.Profile
		}
		all = append(all, profile)
	}
	return all
}

// LowerOf returns the lower bound of a report; nil if there is none.
func LowerOf(r *analysis.Report) *float64 {
	lower := float64(r.EpsilonLower)
	if math.IsNaN(lower) {
		return nil
	}
	return &lower
}
