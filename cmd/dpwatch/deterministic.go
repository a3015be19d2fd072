package main

import (
	"slices"

	"github.com/dpwatch/dpwatch/config"
)

// deterministicUsage is the help of --deterministic.
const deterministicUsage = "what it means that answers never vary and differ between D0 and D1: violation, warning (inconclusive), or\nignore (inconclusive, and not mentioned)"

// validDeterministic reports whether --deterministic may be so.
func validDeterministic(policy string) bool {
	return slices.Contains(config.DeterministicPolicies(), policy)
}
