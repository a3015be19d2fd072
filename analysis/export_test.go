package analysis

// ProjectEvent and ProjectBins let the golden values of the projections be checked from outside.
var (
	ProjectEvent = projectEvent
	ProjectBins  = projectBins

	ProjectTernary = func(p, q [3]float64, ratio float64) (ps, qs [3]float64) { return projectTernary(p, q, ratio) }
)

// SkipBound makes an audit decide about the claim alone: no bound is computed below it.
func SkipBound(a *Audit) { a.front = a.claimAt }

// RestoreBody reads a state without its head and checksum.
func RestoreBody(body []byte) (*Audit, error) {
	a := &Audit{}
	return a, a.restore(body)
}

// StateHead is the length of what stands before the body.
const StateHead = len(stateMagic) + 1
