package rewrite

import (
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/dpwatch/dpwatch/internal/capture"
	"github.com/dpwatch/dpwatch/internal/pg/ident"
	"github.com/dpwatch/dpwatch/rewrite/internal/claim"
	"github.com/dpwatch/dpwatch/rewrite/reasons"
)

// sequenceVersion changes whenever the key of some sequence changes.
const sequenceVersion = "dpwatch rewrite sequence 1"

// The sources of the claim of a sequence: the sum of the claims of its statements, or the largest of them
// (Options.MaxOfSequence).
const (
	SourceSum = "sum"
	SourceMax = "max"
)

// sequence returns the plan of a sequence: the union of what its statements read and call, their identities and claims
// together. A statement without a claim leaves the sequence without one.
func (r *Rewriter) sequence(q capture.Query, values map[string]Value) (*Plan, error) {
	p := &Plan{Claim: &Claim{Source: SourceSum}, Sorted: true, rewriter: r}
	if r.options.MaxOfSequence {
		p.Claim.Source = SourceMax
	}
	var summaries []string
	keys, shapes := sha256.New(), sha256.New()
	writeString(keys, sequenceVersion)
	if r.options.MaxOfSequence {
		writeString(keys, SourceMax)
	}
	for i := range 1 + len(q.Then) {
		step, err := r.AnalyzeWith(q.Step(i), values)
		if err != nil {
			return nil, err
		}
		p.add(step)
		writeString(keys, step.Key)
		writeString(shapes, step.Shape)
		summaries = append(summaries, step.Summary)
	}
	first := p.steps[0]
	for _, step := range p.steps {
		if !maps.Equal(step.Settings, first.Settings) || !slices.Equal(step.SearchPath, first.SearchPath) {
			return nil, refuse(reasons.SettingsUncertain, "the statements of a sequence need the same settings and search path", "")
		}
	}
	if p.Claim != nil && p.Claim.Delta >= 1 {
		return nil, refuse(reasons.BadClaim, "the deltas of the sequence add up to 1 or more", "")
	}
	p.Settings, p.SearchPath = first.Settings, first.SearchPath
	p.Key, p.Shape, p.Group = hexKey(keys.Sum(nil)), hexKey(shapes.Sum(nil)), first.Group
	p.Summary = cutText(fmt.Sprintf("%d queries together: %s", len(p.steps), strings.Join(summaries, "; ")), maxSummaryBytes)
	return p, nil
}

// add adds a statement to the plan of a sequence.
func (p *Plan) add(step *Plan) {
	p.steps = append(p.steps, step)
	p.Tables, p.Public = union(p.Tables, step.Tables), union(p.Public, step.Public)
	p.Implied = union(p.Implied, step.Implied)
	p.Functions = slices.Compact(slices.Sorted(slices.Values(slices.Concat(p.Functions, step.Functions))))
	p.Assumed = slices.Compact(slices.Sorted(slices.Values(slices.Concat(p.Assumed, step.Assumed))))
	p.Beside = slices.Compact(slices.Sorted(slices.Values(slices.Concat(p.Beside, step.Beside))))
	p.Ignored = append(p.Ignored, step.Ignored...)
	p.DPCalls += step.DPCalls
	p.Sorted, p.Facts = p.Sorted && step.Sorted, p.Facts.With(step.Facts)
	p.UnknownNames = p.UnknownNames || step.UnknownNames
	switch {
	case p.Claim == nil:
	case step.Claim == nil:
		p.Claim = nil
	default:
		p.Claim = Compose(p.Claim, step.Claim)
	}
}

// Compose returns the claim of a sequence, of which so has the source, with a further statement.
func Compose(so, step *Claim) *Claim {
	c := claim.Compose(*so, *step, so.Source == SourceMax)
	return &c
}

// union returns the tables of both sorted lists, sorted.
func union(a, b []Table) []Table {
	all := map[Table]bool{}
	for _, t := range slices.Concat(a, b) {
		all[t] = true
	}
	return ident.Sorted(all)
}

// forSteps is For of a sequence: the texts of its statements, separated by semicolons.
func (p *Plan) forSteps(schema string) (string, error) {
	var texts []string
	for _, step := range p.steps {
		text, err := step.For(schema)
		if err != nil {
			return "", err
		}
		texts = append(texts, text)
	}
	return strings.Join(texts, ";\n"), nil
}

// Steps returns the plans of the statements of a sequence, nil for a single statement.
func (p *Plan) Steps() []*Plan { return p.steps }
