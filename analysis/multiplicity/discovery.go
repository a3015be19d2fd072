package multiplicity

// DiscoveryShare is the part of the error rate of audit j, counted from 1 in the order in which they begin, if reported
// violations had been reported in all when it began: Share(j) (reported + 1). If each audit of an honest query is
// reported with probability at most alpha times its part, given all that happened before it began, then the false
// discovery rate is at most alpha at every time: the mean of false reports divided by all reports (0 without any). NaN
// for j < 1 or reported < 0.
//
// Proof: if honest audit j is reported, there are at least reported_j + 1 reports from then on, so that its
// contribution to the quotient is at most 1/(reported_j + 1). Its mean is at most alpha Share(j), and these parts add
// up to 1. No independence between audits is needed, and audits may overlap, since only reports before an audit begins
// count (Javanmard and Montanari 2018, "Online rules for control of false discovery rate", LOND; Xu and Ramdas 2024,
// "Online multiple testing with e-values", e-LOND; Zrnic, Ramdas and Jordan 2021 for audits that overlap).
func DiscoveryShare(j, reported int) float64 {
	if reported < 0 {
		return Share(0)
	}
	return Share(j) * float64(reported+1)
}
