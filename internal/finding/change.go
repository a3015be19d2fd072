package finding

import (
	"strings"
	"time"
)

// Change is a change of the engine.
type Change struct {
	At        time.Time `json:"at"`                  // when dpwatch noticed it
	Functions []string  `json:"functions,omitempty"` // whose definitions changed, as schema.name; none = a version, a setting, or what a label says
	Label     string    `json:"label,omitempty"`     // of the deploy, as posted
}

// mostNamed bounds the functions that a text names.
const mostNamed = 5

// What names what changed.
func (c *Change) What() string {
	what := "the engine"
	if n := len(c.Functions); n > 0 {
		what = "function " + strings.Join(c.Functions[:min(n, mostNamed)], ", ")
		if n > 1 {
			what = strings.Replace(what, "function", "functions", 1)
		}
		if n > mostNamed {
			what += " and others"
		}
	}
	return what
}

// Before says in one sentence that the engine changed, and how long before a time.
func (c *Change) Before(t time.Time) string {
	text := c.What() + " changed " + max(t.Sub(c.At), 0).Round(time.Second).String() + " before, at " + c.At.UTC().Format(time.DateTime) + " UTC"
	if c.Label != "" {
		text += " (" + c.Label + ")"
	}
	return text
}
