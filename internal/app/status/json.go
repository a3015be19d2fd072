package status

import (
	"encoding/json"

	"github.com/dpwatch/dpwatch/internal/capture"
	"github.com/dpwatch/dpwatch/internal/supervise"
	"github.com/dpwatch/dpwatch/proxy"
)

// RouteStatus is the status of one route.
type RouteStatus struct {
	Name        string      `json:"name"`
	Listen      []string    `json:"listen"`
	Upstream    string      `json:"upstream"`
	Engine      string      `json:"engine"`
	TLS         string      `json:"tls"`
	UpstreamTLS string      `json:"upstream_tls"`
	Captured    string      `json:"captured"` // yes, no, or what is not captured
	Proxy       proxy.Stats `json:"proxy"`
}

// RelayStatus is the answer of GET /api/status for one engine.
type RelayStatus struct {
	Version string             `json:"version"`
	Engine  string             `json:"engine"`
	Proxy   proxy.Stats        `json:"proxy"`
	Routes  []RouteStatus      `json:"routes"`
	Queue   capture.QueueStats `json:"queue"`
	Auditor supervise.Stats    `json:"auditor"`
	Audit   json.RawMessage    `json:"audit"`  // a view.Status; null = the auditor has not sent one
	Paused  bool               `json:"paused"` // the requested state; the auditor's pace reports the actual one
}

// EnginesStatus is the answer of GET /api/status if there are several engines and the request names none.
type EnginesStatus struct {
	Version string            `json:"version"`
	Proxy   proxy.Stats       `json:"proxy"`   // all routes together
	Engines []json.RawMessage `json:"engines"` // the RelayStatus of each
}

// SkippedStatements returns the numbers of statements that were run and not captured, by reason.
func SkippedStatements(s proxy.Stats) map[string]uint64 {
	return map[string]uint64{
		"client_encoding": s.SkippedEncoding, "standard_conforming_strings": s.SkippedStrings, "too_long": s.SkippedTooLong,
		"over_budget": s.SkippedNotCopied, "unknown_statement": s.SkippedUnknownStatement, "unreadable": s.SkippedUnreadable, "arguments": s.SkippedArguments,
		"unprotected": s.SkippedUnprotected, "function_call": s.SkippedFunctionCall,
	}
}
