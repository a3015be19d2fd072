package saved

import (
	"bytes"
	"encoding/gob"
	"errors"
	"fmt"
	"time"

	"github.com/dpwatch/dpwatch/analysis"
	"github.com/dpwatch/dpwatch/internal/audit/evidence"
	"github.com/dpwatch/dpwatch/internal/audit/view"
	"github.com/dpwatch/dpwatch/internal/ledger"
	"github.com/dpwatch/dpwatch/replay/hoisting"
)

// Reports returns the neighbours of an audit in the ledger with their reports, and which of them is the worst,
// without an Auditor. There are none if the audit has no evidence. The claim's source is set by the caller.
func Reports(row *ledger.Audit) (neighbours []string, reports []analysis.Report, worst int, err error) {
	p, e, err := storedEvidence(row)
	if e == nil {
		return nil, nil, 0, err
	}
	worst, reports = e.Worst()
	p.RestoreProfile(e, worst, &reports[worst])
	e.Audit(worst).AddProfile(&reports[worst])
	return p.Neighbours, reports, worst, nil
}

// Figures are those of the worst neighbour of an audit in the ledger.
type Figures struct {
	analysis.Figures
	Threshold float64 // log-wealth at which the audit reports a violation: depends on audit.error_rate
	Seed      uint64  // of the order of the trials
}

// ReadFigures returns the figures of an audit in the ledger; without evidence they are empty. The profile takes time: see
// [analysis.Audit.Figures].
func ReadFigures(row *ledger.Audit) (Figures, error) {
	return readFigures(row, (*analysis.Audit).Figures)
}

// ReadQuickFigures returns the figures without the profile.
func ReadQuickFigures(row *ledger.Audit) (Figures, error) {
	return readFigures(row, (*analysis.Audit).QuickFigures)
}

func readFigures(row *ledger.Audit, of func(*analysis.Audit) analysis.Figures) (Figures, error) {
	p, e, err := storedEvidence(row)
	if e == nil {
		return Figures{}, err
	}
	worst, reports := e.Worst()
	return Figures{of(e.Audit(worst)), reports[worst].Threshold(), p.Seed}, nil
}

// storedEvidence decodes the evidence of an audit in the ledger; nil = none.
func storedEvidence(row *ledger.Audit) (*Progress, *evidence.Evidence, error) {
	if row.Progress == nil {
		return nil, nil, nil
	}
	p, err := Decode(row)
	if err != nil || len(p.Evidence) == 0 {
		return nil, nil, err
	}
	return p.withEvidence()
}

// withEvidence returns the progress with its evidence, which it must have.
func (p *Progress) withEvidence() (*Progress, *evidence.Evidence, error) {
	e := new(evidence.Evidence)
	if err := e.UnmarshalBinary(p.Evidence); err != nil {
		return nil, nil, err
	}
	if e.Neighbours() != len(p.Neighbours) {
		return nil, nil, ErrDamaged
	}
	return p, e, nil
}

// ProgressVersion changes whenever the form of progress does. The evidence inside has a version of its own.
const ProgressVersion = 3

// Progress is what the ledger stores of an audit so that another process can go on with it.
type Progress struct {
	Version    int
	Evidence   []byte // see evidence.Evidence; empty = none
	Trials     int    // of the evidence, on all copies
	Neighbours []string
	Reported   []bool // by neighbour: its violation was reported
	Restarts   int
	Seed       uint64 // of the order of its trials; 0 = of an earlier version, which did not store it
	Hoisting   *hoisting.Report
	Confirming bool
	Measuring  bool
	Suspected  float64
	Doubted    bool
	Trouble    string // of an audit that was decided without evidence
	Decided    bool
	DecidedAt  time.Time
	Repeats    int
	Previous   analysis.Verdict
	Turns      int
	Used       time.Duration
	Changes    int // alarms of the change detector
	Changed    time.Time
	Background bool // it is repeated in the watch share
	Life       Life
	Profiles   [][]analysis.ProfilePoint // by neighbour: that of its finding
}

// Encode returns the form of the progress in the ledger, not yet sealed.
func (p *Progress) Encode() ([]byte, error) {
	var b bytes.Buffer
	err := gob.NewEncoder(&b).Encode(p)
	return b.Bytes(), err
}

// ErrDamaged is the error of progress whose parts contradict each other.
var ErrDamaged = errors.New("the stored progress is damaged")

// Decode decodes the progress in the ledger, without its evidence.
func Decode(row *ledger.Audit) (*Progress, error) {
	body, err := ledger.Unseal(row.Progress)
	if err != nil {
		return nil, err
	}
	p := new(Progress)
	if err := gob.NewDecoder(bytes.NewReader(body)).Decode(p); err != nil {
		return nil, fmt.Errorf("the stored progress cannot be decoded: %w", err)
	}
	switch {
	case p.Version != ProgressVersion:
		return nil, fmt.Errorf("the stored progress has form %d, this version reads form %d", p.Version, ProgressVersion)
	case len(p.Reported) != len(p.Neighbours):
		return nil, ErrDamaged
	}
	return p, nil
}

// RestoreProfile adds the stored profile to the report of a neighbour.
func (p *Progress) RestoreProfile(e *evidence.Evidence, i int, r *analysis.Report) {
	if i < len(p.Profiles) {
		e.Audit(i).RestoreProfile(r, p.Profiles[i])
	}
}

// Life is what the ledger stores of an audit about the engine, beyond its evidence.
type Life struct {
	Engine   string           // version of the engine of the evidence; "" = not known
	Began    int              // how often the evidence was dropped because the engine changed
	Differ   []string         // functions of which production has other definitions: the audit is inconclusive
	Resolved *view.Resolution // the last violation that was resolved
}
