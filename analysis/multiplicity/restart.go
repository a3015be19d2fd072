package multiplicity

import "math"

// RestartShare is the part of an audit's error rate for its r-th process, counted from 0 for the first. Evidence that
// restarts (on new copies of the data, or because trials are computed in another way) may alarm again. With these
// parts, which sum to 1, an audit raises a false alarm at most at its rate, however often it restarts. The first has
// three quarters: 0.3 nats more than an audit that never restarts; the r-th needs 1.9 + 2 ln r more nats. It is NaN for
// a negative r.
//
// The confirmation of a violation on fresh trials is not a restart: a process alarms only if its first trials and their
// confirmation both do, and so with a probability of at most its part.
func RestartShare(r int) float64 {
	const first = .75
	switch {
	case r < 0:
		return math.NaN()
	case r == 0:
		return first
	}
	return (1 - first) * Share(r)
}
