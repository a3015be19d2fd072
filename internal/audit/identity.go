package audit

import (
	"crypto/sha256"
	"encoding/hex"

	"github.com/dpwatch/dpwatch/internal/capture"
)

// identity returns the identity of a query's audit: the plan's key and, if several engines stand behind the proxy, the
// engine, because their claims may differ; and the name of its route.
func (a *Auditor) identity(q capture.Query, planKey string) (key, route string) {
	if a.opt.Route != nil {
		route = a.opt.Route(q)
	}
	if route == "" {
		return planKey, ""
	}
	sum := sha256.Sum256([]byte(planKey + "\x00" + route))
	return hex.EncodeToString(sum[:]), route
}
