package audit

import (
	"crypto/sha256"
	"encoding/hex"

	"github.com/dpwatch/dpwatch/internal/capture"
	"github.com/dpwatch/dpwatch/internal/withheld"
)

// identity returns the identity of a query's audit: the plan's key and, if several engines stand behind the proxy, the
// engine, because their claims may differ; and the name of its route.
func identity(o *Options, q capture.Query, planKey string) (key, route string) {
	if route = o.route(q); route == "" {
		return planKey, ""
	}
	sum := sha256.Sum256([]byte(planKey + "\x00" + route))
	return hex.EncodeToString(sum[:]), route
}

// route returns the name of a query's engine; "" if there is only one.
func (o *Options) route(q capture.Query) string {
	if o.Route == nil {
		return ""
	}
	return o.Route(q)
}

// say returns the message of an error. Unless ShowValues is set, it omits messages of a server: they may quote rows.
func (o *Options) say(err error) string {
	if o.ShowValues {
		return withheld.Reveal(err)
	}
	return say(err)
}

// say returns the message of an error without what a server says: it may quote rows.
func say(err error) string { return err.Error() }
