package diagnosis

import (
	"cmp"
	"maps"
	"math"
	"slices"

	"github.com/dpwatch/dpwatch/internal/withheld"
)

// Code identifies a cause for programs.
type Code string

// The causes.
const (
	NoiseScale         Code = "noise_scale"
	NoiseFamily        Code = "noise_family"
	Clipping           Code = "clipping"
	ContributionBounds Code = "contribution_bounds"
	Composition        Code = "composition"
	DataDependentScale Code = "data_dependent_scale"
	PartitionSelection Code = "partition_selection"
	EmptySet           Code = "empty_set"
	SeedOrCache        Code = "seed_or_cache"
	SharedNoise        Code = "shared_noise"
	Support            Code = "support"
	Rounding           Code = "rounding"
	FloatingPoint      Code = "floating_point"
	RandomisedResponse Code = "randomised_response"
	RowOrder           Code = "row_order"
	AnswerForm         Code = "form"
	ExactTotal         Code = "exact_total"
	Aggregate          Code = "aggregate"
	ErrorOnData        Code = "error"
	NotANumber         Code = "not_a_number"
)

// names are the causes in a few words.
var names = map[Code]string{
	NoiseScale:         "too little noise for what one person changes",
	NoiseFamily:        "a family of noise that does not keep the claim",
	Clipping:           "a person's values are not clipped to the bounds that the noise is made for",
	ContributionBounds: "a person contributes to more rows or groups than the noise is made for",
	Composition:        "each column spends the whole claim",
	DataDependentScale: "the scale of the noise depends on the data",
	PartitionSelection: "a group is released or suppressed without a noisy threshold",
	EmptySet:           "NULL, or no row, for an empty set",
	SeedOrCache:        "no noise, noise from a fixed seed, or a cache",
	SharedNoise:        "columns or groups share one draw of noise",
	Support:            "noise or answers are cut off at a bound that depends on the data",
	Rounding:           "the answer before noise is seen in its remainder",
	FloatingPoint:      "naive noise in floating point",
	RandomisedResponse: "randomised response with the wrong probability",
	RowOrder:           "the order of the rows depends on the data",
	AnswerForm:         "the form of the answer depends on the data",
	ExactTotal:         "columns or groups add up to a true total",
	Aggregate:          "the smallest, the largest or the order of the groups shows more than each group",
	ErrorOnData:        "an error that depends on the data",
	NotANumber:         "a NaN or an infinity in the data reaches the answer",
}

// Cause is a probable cause. It is always a heuristic.
type Cause struct {
	Code Code   `json:"code"`
	Name string `json:"name"`
	// Text is one or two sentences with figures. It ends with a full stop.
	Text  withheld.Text `json:"text"`
	Basis string        `json:"basis"` // always "likely"
	// Figures holds ratios and counts; nothing in the units of the data.
	Figures map[string]float64 `json:"figures"`
	Page    string             `json:"page"` // of the documentation, with the fix

	weight float64
}

// Page is where the causes are explained; each has a section with its code as anchor.
const Page = "docs/causes.md"

// Codes returns the codes of all causes, sorted.
func Codes() []Code { return slices.Sorted(maps.Keys(names)) }

func newCause(code Code, weight float64, text withheld.Text, figures map[string]float64) Cause {
	kept := map[string]float64{}
	for name, x := range figures {
		if !math.IsNaN(x) && !math.IsInf(x, 0) { // JSON has no such numbers
			kept[name] = x
		}
	}
	return Cause{Code: code, Name: names[code], Text: text, Basis: "likely", Figures: kept, Page: Page + "#" + string(code), weight: weight}
}

// maxCauses is the greatest number of causes that are returned.
const maxCauses = 3

// Causes returns the probable causes of a violation, the most likely one first; never nil.
func Causes(e Evidence) []Cause {
	all := []Cause{}
	add := func(c Cause, ok bool) {
		if ok && !slices.ContainsFunc(all, func(o Cause) bool { return o.Code == c.Code }) {
			all = append(all, c)
		}
	}
	add(e.seedOrCache())
	add(e.sharedNoise())
	add(e.cutOff())
	add(e.byEvent())
	add(e.errorOnData())
	add(e.emptySet())
	add(e.notANumber())
	add(e.partitions())
	add(e.response())
	for _, c := range e.scales() {
		add(c, true)
	}
	slices.SortStableFunc(all, func(a, b Cause) int { return cmp.Compare(b.weight, a.weight) })
	return all[:min(len(all), maxCauses)]
}
