// Package querypage has what the relay and the process that reads an audit for a page send each other. That process
// parses SQL and reads evidence, which the relay must not: see findings.ServePage.
package querypage

import (
	"encoding/json"

	"github.com/dpwatch/dpwatch/internal/read"
)

// Command is the hidden command of that process.
const Command = "page"

// Request is what it reads from standard input.
type Request struct {
	Configuration json.RawMessage `json:"configuration"` // see config.Resolved.Encode
	ID            string          `json:"id"`
	Values        bool            `json:"values"`
	Profile       bool            `json:"profile"`   // compute the privacy profile, too, which takes time
	Reproduce     bool            `json:"reproduce"` // run fresh trials instead
	Operator      string          `json:"operator"`
}

// Answer is what it writes to standard output.
type Answer struct {
	Details *read.Details `json:"details"`
	Error   string        `json:"error"`
	Absent  bool          `json:"absent"`  // there is no such audit
	Request bool          `json:"request"` // the request is at fault: it means several audits
}
