package analysis

import (
	"fmt"
	"slices"
	"strings"

	"github.com/dpwatch/dpwatch/analysis/internal/code"
	"github.com/dpwatch/dpwatch/analysis/internal/dependence"
	"github.com/dpwatch/dpwatch/internal/outcome"
)

// DeterministicPolicy is the treatment of answers that never vary in each world and differ between the worlds.
type DeterministicPolicy string

// The policies.
const (
	DeterministicViolation DeterministicPolicy = "violation" // the verdict is Violation
	DeterministicWarning   DeterministicPolicy = "warning"   // the verdict is Inconclusive, with a warning
	DeterministicIgnore    DeterministicPolicy = "ignore"    // the verdict is Inconclusive; no warning, no finding
)

// Deterministic is a separate finding: answers that never vary, or that repeat earlier ones exactly far beyond chance.
// It implies no epsilon: an engine that adds no noise, one that draws it from a fixed seed, and a cache in front of an
// honest engine give the same answers.
type Deterministic struct {
	Kind string `json:"kind"` // same_answer or repeats
	// Differ is set for same_answer if the answers on D0 and D1 differ.
	Differ bool `json:"differ"`
	// Repeats is the number of answers per world that repeat an earlier one, as far as they were remembered.
	Repeats     Trials `json:"repeats"`
	Description string `json:"description"`
}

// The pairs of trials without variation after which answers count as deterministic. Few if a number has so many digits
// that its exact repetition is not chance; a text, or a small number, may be the most likely answer.
const (
	sameNumberPairs = 24
	sameAnswerPairs = dependence.StuckPairs
)

// howToTell is the end of every description.
const howToTell = "no noise, noise from a fixed seed, or a cache. To tell them apart send the query with another comment or alias: " +
	"a cache of results then gives another answer, a fixed seed the same; and look whether the answer is the exact one"

// sameAnswer reports whether the answers of each world never varied in enough trials, and differ between the worlds.
// With a claim, enough is also that the wealth against it has reached the threshold: where the claim is large, an
// honest engine may give one likely answer for a long time (a binary response of epsilon 6 gives another one in 404
// trials). So this finding adds nothing to the rate of false alarms.
func (a *Audit) sameAnswer() bool {
	o, v := &a.observed, &a.evidence
	if o.failing() {
		return false
	}
	if !a.opts.NoClaim && v.highest() < v.threshold {
		return false
	}
	need := sameAnswerPairs
	switch {
	case a.opts.Suspicion && !a.opts.NoClaim && !a.phases.confirming():
		need = suspicionPairs(a.claim, a.opts.alpha())
	case precise(o.scores.Now[0].Codes) && precise(o.scores.Now[1].Codes):
		need = sameNumberPairs
	case a.phases.confirming() && a.phases.first.detectedAt == 0 && !a.opts.Suspicion:
		need = sameNumberPairs // the pairs before were as many, of one answer too
	}
	return o.monotony.pairs >= need && o.monotony.constant() && o.monotony.first[0] != o.monotony.first[1]
}

// blank reports whether no answer of either world had a row, or all had the same rows without a value that is not NULL:
// then the trials show nothing, not even that noise is missing.
func (o *observations) blank() bool {
	m := &o.monotony
	if m.pairs == 0 || !m.constant() || m.first[0] != m.first[1] || len(o.retained) == 0 {
		return false
	}
	return isBlank(&o.retained[0].worlds[0]) && isBlank(&o.retained[0].worlds[1])
}

// frozen reports whether every answer of both worlds was the same: the trials could not have found anything.
func (o *observations) frozen() bool {
	return o.pairs > 1 && o.monotony.constant() && o.monotony.first[0] == o.monotony.first[1]
}

// failing reports whether every trial of both worlds failed.
func (o *observations) failing() bool {
	return o.pairs > 0 && o.failures[0] == o.pairs && o.failures[1] == o.pairs && o.cut == [2]int{}
}

// failure says with which errors trials fail, as far as outcomes are retained.
func (o *observations) failure() string {
	var states [2]string
	for world := range states {
		var all []string
		for i := range o.retained {
			if s := stateOf(&o.retained[i].worlds[world]); !slices.Contains(all, s) {
				all = append(all, s)
			}
		}
		slices.Sort(all)
		states[world] = strings.Join(all, ", ")
	}
	if states[0] == states[1] {
		return states[0]
	}
	return states[0] + " on D0, and " + states[1] + " on D1"
}

// stateOf returns the SQLSTATE of an outcome; recorded files can have any text there.
func stateOf(o *Outcome) string {
	if len(o.SQLState) != 5 || strings.Trim(o.SQLState, "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ") != "" {
		return "an error without an SQLSTATE"
	}
	return "SQLSTATE " + o.SQLState
}

func isBlank(o *Outcome) bool {
	for _, row := range o.Rows {
		if slices.ContainsFunc(row, func(v Value) bool { return v.Kind != outcome.Null }) {
			return false
		}
	}
	return !o.Failed()
}

// deterministic returns the finding, nil for none.
func (o *observations) deterministic(policy DeterministicPolicy, sameAnswer bool) *Deterministic {
	if policy == DeterministicIgnore {
		return nil
	}
	d := &Deterministic{Repeats: Trials{o.scores.Repeats.Echoes[0], o.scores.Repeats.Echoes[1]}}
	switch {
	case sameAnswer:
		d.Kind, d.Differ = "same_answer", true
		d.Description = fmt.Sprintf("in %d pairs of trials the answer is the same every time, and another on D1 than on D0: %s", o.monotony.pairs, howToTell)
	case o.monotony.pairs >= sameAnswerPairs && o.monotony.constant():
		d.Kind = "same_answer"
		d.Description = fmt.Sprintf("in %d pairs of trials the answer is the same every time, on D0 and D1 alike: %s", o.monotony.pairs, howToTell)
	case !o.monotony.constant() && (o.repeatsTooOften(0) || o.repeatsTooOften(1)):
		d.Kind = "repeats"
		d.Description = fmt.Sprintf("%d answers on D0 and %d on D1 repeat earlier ones exactly, far more than chance gives at so many digits: "+
			"reused noise, a small stock of noise, a cache, or values cut off at a bound", d.Repeats.D0, d.Repeats.D1)
	default:
		return nil
	}
	return d
}

// precise reports whether codes hold a number whose exact repetition cannot be chance.
func precise(codes []code.Code) bool {
	return slices.ContainsFunc(codes, func(c code.Code) bool { return code.IsNumber(c) && code.SignificantBits(c) > 24 })
}
