package evidence

import (
	"bytes"
	"encoding/gob"
	"errors"
	"fmt"
	"math"

	"github.com/dpwatch/dpwatch/analysis"
	"github.com/dpwatch/dpwatch/analysis/multiplicity"
	"github.com/dpwatch/dpwatch/internal/outcome"
)

// Bounds of the blocks of a Watch.
const (
	leastBlock = 200 // minimal number of rounds
	blockPart  = 20  // otherwise a block has one in blockPart of the trials of an audit
)

// WatchRunLength bounds the false alarms of a Watch: while the claim holds, the mean number of blocks until an alarm is
// at least this.
const WatchRunLength = 1000

// Watch detects that a query that kept its claim no longer does, from trials that go on at a low rate. It is not safe
// for concurrent use.
//
// Rounds are grouped in blocks. Every block begins new evidence, without the bets or the losses of the blocks before
// it; the average of its wealths over the neighbours multiplies a Shiryaev-Roberts sum R, which grows by 1 at the
// beginning of a block. While all claims hold, R minus the number of blocks begun is a supermartingale at every round,
// so that R reaches WatchRunLength after as many blocks on average, or later, whenever one looks. A block ends after
// BlockRounds rounds, or later if its wealth is above 1 by then: which is known from the past, so that the argument
// holds.
type Watch struct {
	claim      analysis.Claim
	opt        analysis.Options
	neighbours int

	sum    multiplicity.Detector // before the present block
	audits []*analysis.Audit     // of the present block, by neighbour; nil = it has not begun
	rounds int                   // in the present block
	total  int                   // in all blocks
}

// NewWatch begins to watch a query with the claim and the options of its audit.
func NewWatch(claim analysis.Claim, opt analysis.Options, neighbours int) *Watch {
	return &Watch{claim: claim, opt: opt.For(claim), neighbours: neighbours}
}

// BlockRounds returns the minimal number of rounds of a block for audits of at most so many trials.
func BlockRounds(maxTrials int) int { return max(leastBlock, maxTrials/blockPart) }

// Add adds one round: the outcomes on D0 and on each neighbour. The error is that of New.
func (w *Watch) Add(round []outcome.Outcome) error {
	if w.audits == nil {
		for range w.neighbours {
			a, err := analysis.New(w.claim, w.opt)
			if err != nil {
				w.audits = nil
				return err
			}
			w.audits = append(w.audits, a)
		}
	}
	for i, a := range w.audits {
		a.Add(round[0], round[i+1])
	}
	w.rounds++
	w.total++
	if n := BlockRounds(w.opt.MaxTrials); w.rounds >= w.opt.MaxTrials || w.rounds%n == 0 && w.wealth() <= 0 {
		w.sum.Step(w.wealth(), 1./WatchRunLength)
		w.audits, w.rounds = nil, 0
	}
	return nil
}

// wealth returns the logarithm of the average wealth of the neighbours in the present block.
func (w *Watch) wealth() float64 {
	most, sum := math.Inf(-1), 0.
	all := make([]float64, len(w.audits))
	for i, a := range w.audits {
		if all[i] = float64(a.Report().WealthLog); math.IsNaN(all[i]) {
			all[i] = 0
		}
		most = max(most, all[i])
	}
	if math.IsInf(most, 0) {
		return 0
	}
	for _, x := range all {
		sum += math.Exp(x - most)
	}
	return most + math.Log(sum/float64(len(all)))
}

// Alarm reports whether the rounds so far show that the claim does not hold any more, at the rate of WatchRunLength.
func (w *Watch) Alarm() bool { return w.Evidence() >= math.Log(WatchRunLength) }

// Evidence returns the logarithm of the detector's sum, 0 before the first round; Alarm compares it with the logarithm
// of WatchRunLength.
func (w *Watch) Evidence() float64 {
	if w.total == 0 {
		return 0
	}
	if w.audits == nil {
		return w.sum.LogSum()
	}
	now := w.sum
	now.Step(w.wealth(), 1./WatchRunLength)
	return now.LogSum()
}

// Rounds returns the number of rounds so far.
func (w *Watch) Rounds() int { return w.total }

// watchVersion changes whenever the saved form of a Watch does.
const watchVersion = 1

type watchState struct {
	Version       int
	LogSum        float64
	Begun         bool
	Audits        []*analysis.Audit
	Rounds, Total int
}

// MarshalBinary saves the detector: restored, it goes on bit for bit as if it had not been interrupted. The state holds
// values of results and needs the protection of the raw data.
func (w *Watch) MarshalBinary() ([]byte, error) {
	s := watchState{Version: watchVersion, LogSum: w.sum.LogSum(), Audits: w.audits, Rounds: w.rounds, Total: w.total}
	if s.Begun = !math.IsInf(s.LogSum, -1); !s.Begun {
		s.LogSum = 0
	}
	var b bytes.Buffer
	if err := gob.NewEncoder(&b).Encode(&s); err != nil {
		return nil, fmt.Errorf("save a change detector: %w", err)
	}
	return b.Bytes(), nil
}

// UnmarshalBinary restores what MarshalBinary saved. The claim, the options and the number of neighbours must be those
// that NewWatch had then. Anything else gives an error and leaves w as it was.
func (w *Watch) UnmarshalBinary(data []byte) error {
	var s watchState
	if err := gob.NewDecoder(bytes.NewReader(data)).Decode(&s); err != nil {
		return fmt.Errorf("restore a change detector: %w", err)
	}
	switch {
	case s.Version != watchVersion:
		return fmt.Errorf("restore a change detector: it was saved in form %d, this version reads form %d", s.Version, watchVersion)
	case len(s.Audits) != 0 && len(s.Audits) != w.neighbours, math.IsNaN(s.LogSum), math.IsInf(s.LogSum, 0), s.Rounds < 0, s.Total < s.Rounds:
		return errors.New("restore a change detector: the saved state is damaged")
	}
	w.audits, w.rounds, w.total, w.sum = s.Audits, s.Rounds, s.Total, multiplicity.Detector{}
	if s.Begun {
		w.sum.Resume(s.LogSum)
	}
	return nil
}
