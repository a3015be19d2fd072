package survey

import (
	"fmt"
	"math"

	"github.com/dpwatch/dpwatch/analysis"
	"github.com/dpwatch/dpwatch/analysis/response"
)

// judge compares the declared mechanism and the answers with the claim.
//
// The declared mechanism has a known loss, so a loss above the claim needs no statistics. The answers can also show a
// violation: k-ary response with any probability of the truth that keeps an epsilon names each category with a
// probability between 1/(1+(k-1)e^epsilon) and e^epsilon/(e^epsilon+k-1), whatever the truth is. For delta above 0
// these bounds do not apply, and only the declared mechanism is compared.
func (r *Report) judge(answers []Answer, o Options) {
	low, high := min(o.Truth, r.Other), max(o.Truth, r.Other)
	outside := o.outside(answers, r.Answers, low, high)
	fits := "the answers do not contradict the declared probability"
	if outside != "" {
		fits = "the answers contradict the declared probability: " + outside + fmt.Sprintf(", and response with this probability names it in %.4g to %.4g of the answers", low, high)
	}
	if r.Claim == nil {
		r.Reason = fits
		return
	}
	epsilon, k := r.Claim.Epsilon, float64(o.Categories)
	r.Delta = analysis.Float(response.Delta(o.Categories, o.Truth, epsilon))
	needed := response.Delta(o.Categories, o.Truth, epsilon+tolerance)
	least, most := 1/(1+(k-1)*math.Exp(epsilon)), response.Truth(o.Categories, epsilon)
	switch {
	case needed > r.Claim.Delta:
		r.Verdict = analysis.Violation
		r.Reason = fmt.Sprintf("response with this probability has the epsilon %.4g; at the claimed epsilon %.4g it needs a delta of %.4g, and %.4g is claimed", float64(r.Epsilon), epsilon, float64(r.Delta), r.Claim.Delta)
	case r.Claim.Delta == 0 && o.outside(answers, r.Answers, least, most) != "":
		r.Verdict = analysis.Violation
		r.Reason = fmt.Sprintf("%s, and response that keeps the claim names every category in %.4g to %.4g of the answers, whatever its probability of the truth is", o.outside(answers, r.Answers, least, most), least, most)
	case outside != "":
		r.Verdict, r.Reason = analysis.Inconclusive, fits
	default:
		r.Verdict, r.Reason = analysis.NoEvidence, fits
	}
}

// outside describes the first category whose probability is outside of a range, with an error rate of 1 - Confidence
// over all declared categories and both sides. It returns "" if there is none. Categories without an answer count, as
// one: their shares are bounded alike.
func (o Options) outside(answers []Answer, total int, low, high float64) string {
	alpha := (1 - o.Confidence) / float64(o.Categories) // of the two sides together
	all := answers
	if len(answers) < o.Categories {
		all = append(append([]Answer{}, answers...), Answer{})
	}
	for _, a := range all {
		lower, upper := analysis.ClopperPearson(a.Count, total, alpha)
		if lower > high || upper < low {
			return fmt.Sprintf("one category has %.4g of the answers (%.4g to %.4g)", float64(a.Count)/float64(total), lower, upper)
		}
	}
	return ""
}
