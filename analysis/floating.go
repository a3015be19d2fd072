package analysis

import (
	"math"

	"github.com/dpwatch/dpwatch/analysis/internal/book"
	"github.com/dpwatch/dpwatch/analysis/internal/eprocess"
	"github.com/dpwatch/dpwatch/analysis/internal/event"
	"github.com/dpwatch/dpwatch/analysis/internal/score"
	"github.com/dpwatch/dpwatch/analysis/internal/state"
	"github.com/dpwatch/dpwatch/internal/withheld"
)

// FloatingPointPolicy is the treatment of lowest bits of numbers that show the dataset: noise in floating point that is
// not rounded.
type FloatingPointPolicy string

// The policies.
const (
	FloatingPointViolation FloatingPointPolicy = "violation" // they count like other evidence
	FloatingPointWarning   FloatingPointPolicy = "warning"   // they cause a warning; the verdict follows from other evidence
	FloatingPointIgnore    FloatingPointPolicy = "ignore"    // they are not compared
)

// scores returns what the scores have to know.
func (o *Options) scores() score.Options {
	return score.Options{Unordered: o.Unordered, LowBits: o.FloatingPoint.lowBits(), Constants: o.Query.Constants}
}

// lowBits returns what is done with the scores of lowest bits.
func (p FloatingPointPolicy) lowBits() score.LowBits {
	switch p {
	case FloatingPointWarning:
		return score.Apart
	case FloatingPointIgnore:
		return score.Left
	}
	return score.Counted
}

// apart is a separate e-process, of the scores of lowest bits where these cause a warning. It looks at the ends of
// blocks. Without such scores its wealth stays 1.
type apart struct {
	book  book.Book
	lead  book.Lead
	epoch *book.Epoch
}

func newApart(h eprocess.Null) apart {
	a := apart{lead: book.Lead{Process: book.Process{Null: h}}, epoch: &book.Epoch{}}
	a.lead.Begin(&a.book, a.epoch)
	return a
}

// turn books the current block, and begins one with the bets of an epoch, which starts like that of the other scores.
func (a *apart) turn(e, other *book.Epoch) {
	a.lead.End(&a.book, a.epoch)
	e.DiscardGains, e.Share = other.DiscardGains, other.Share
	a.epoch = e
	a.lead.Begin(&a.book, e)
}

func (a *apart) state(c *state.Codec, mixtures []eprocess.Mixture, tables []*event.Table) {
	a.book.State(c, mixtures, tables)
	state.Made(c, &a.epoch).State(c, tables)
	a.lead.State(c)
}

func (a *apart) verify(c *state.Codec, h eprocess.Null, laws, paired eprocess.Mixture) {
	a.book.Verify(c)
	a.lead.Verify(c, &a.book, h)
	a.epoch.Verify(c, &a.book, laws, paired)
}

// floatingPoint returns the warning that the lowest bits alone would be a violation, if any.
func (a *Audit) floatingPoint() []withheld.Text {
	if a.opts.NoClaim || a.apart.lead.Highest < a.evidence.threshold || a.observed.hold(a.requirements()) != "" {
		return nil
	}
	return []withheld.Text{withheld.Sprintf("the lowest bits of the numbers show the dataset: noise in floating point that is not rounded. By these alone the claim is exceeded with confidence %v, which fresh trials have not confirmed; the verdict leaves them out (floating_point: warning)", a.opts.Confidence)}
}

// lowBitsAlone reports whether no score but those of lowest bits has evidence against the claim that would reject it if
// all wealth were divided equally among the scores and their bins. The wealth itself does not show it, because scores
// share gains. It follows from the past, so that a violation can get other evidence later.
func (o *observations) lowBitsAlone(v *evidence) bool {
	for _, en := range v.epoch.Entries {
		s := o.scores.Named(en.Score)
		if s == nil || s.LowBits() {
			continue
		}
		if v.suffices(en) {
			return false
		}
	}
	return true
}

// suffices reports whether a score has evidence against the claim that would reject it if all wealth were divided equally
// among the scores and their bins. It follows from the past.
func (v *evidence) suffices(en book.Entry) bool {
	needed := v.threshold + math.Log(float64(len(v.epoch.Entries)*en.Table.Bins()))
	return event.Strength(v.lead.Null, en.Table, &v.book.Order)/2 >= needed
}
