package setup

import (
	"github.com/dpwatch/dpwatch/config"
	"github.com/dpwatch/dpwatch/internal/capture"
)

// SessionIDBits is the number of low bits of a session ID that count the sessions of a route; the higher bits are the
// route's index.
const SessionIDBits = 48

// RouteOf returns a function that returns the name of a session's route; nil if there is only one route.
func RouteOf(c *config.Config) func(capture.Query) string {
	all := c.Proxy.AllRoutes()
	if len(all) < 2 {
		return nil
	}
	return func(q capture.Query) string {
		if index := q.SessionID >> SessionIDBits; index < uint64(len(all)) {
			return all[index].Name
		}
		return ""
	}
}
