package tracker

import (
	"maps"
	"slices"
	"strings"

	"github.com/dpwatch/dpwatch/internal/capture"
)

// Limits of what is kept about doubts; beyond them more is in doubt.
const (
	maxCalls    = 64
	maxDoubtful = 256
)

// doubts follows which settings a session can have changed unseen. A setting is certain if no function has run since
// the session itself set it. The maps are replaced, never changed.
type doubts struct {
	names map[string]bool // settings of unknown value
	calls map[string]int  // the latest moments at which functions ran, by name or a constant of capture.Calls
	known map[string]int  // the moments at which settings became certain; kept only if there are calls
	all   int             // the moment at which all settings but the role became certain
	now   int             // counts these moments
}

// roles are the settings that RESET ALL does not reset.
var roles = [...]string{"role", "session_authorization"}

// certain records that a setting is known from now on.
func (d *doubts) certain(name string) {
	if d.names[name] {
		d.names = maps.Clone(d.names)
		delete(d.names, name)
	}
	if len(d.calls) > 0 && len(d.known) < maxSettings {
		d.now++
		d.known = with(d.known, name, d.now)
	}
}

// uncertain records that the value of a setting is not known.
func (d *doubts) uncertain(name string) {
	if !d.names[name] && len(d.names) < maxDoubtful {
		d.names = with(d.names, name, true)
	} else if !d.names[name] {
		d.call(capture.UnknownCode)
	}
}

// call records that a function ran.
func (d *doubts) call(function string) {
	at, listed := d.calls[function]
	if !listed && len(d.calls) >= maxCalls && function != capture.UnknownCode {
		function = capture.UnlistedFunctions
		at, listed = d.calls[function]
	}
	if !listed || at != d.now {
		d.calls = with(d.calls, function, d.now)
	}
}

// called reports whether all functions are recorded already, so that call would change nothing.
func (d *doubts) called(functions []string) bool {
	for _, f := range functions {
		if at, ok := d.calls[f]; !ok || at != d.now {
			return false
		}
	}
	return true
}

// reset records RESET ALL: all settings but the role are certain.
func (d *doubts) reset() {
	names := map[string]bool{}
	for _, name := range roles {
		if d.names[name] {
			names[name] = true
		}
	}
	if d.names = names; len(d.calls) > 0 {
		d.now++
		d.all = d.now
	}
}

// merge adds the doubts of another state of the session, of the same moments or later ones.
func (d *doubts) merge(other doubts) {
	for name := range other.names {
		d.uncertain(name)
	}
	if len(other.calls) > 0 {
		d.now = max(d.now, other.now)
		for function := range other.calls {
			d.call(function)
		}
	}
}

// report returns the doubts in the form of captured queries, while some settings are set for the current transaction.
func (d *doubts) report(local map[string]local, temporary bool) capture.Doubt {
	r := capture.Doubt{Temporary: temporary}
	for name := range d.names {
		if _, hidden := local[name]; !hidden {
			r.Names = append(r.Names, name)
		}
	}
	for name, l := range local {
		if l.unknown {
			r.Names = append(r.Names, name)
		}
	}
	slices.Sort(r.Names)
	groups := map[int][]string{}
	for function, at := range d.calls {
		groups[at] = append(groups[at], function)
	}
	for _, at := range slices.Sorted(maps.Keys(groups)) {
		if c, some := d.group(at, groups[at], local); some {
			r.Calls = append(r.Calls, c)
		}
	}
	return r
}

// group returns the calls at a moment; false if they leave nothing in doubt.
func (d *doubts) group(at int, functions []string, local map[string]local) (c capture.Calls, some bool) {
	slices.Sort(functions)
	c = capture.Calls{Functions: functions}
	for name, known := range d.known {
		if _, hidden := local[name]; !hidden && known > at {
			c.Except = append(c.Except, name)
		}
	}
	for name, l := range local {
		if l.at > at {
			c.Except = append(c.Except, name)
		}
	}
	slices.Sort(c.Except)
	if at >= d.all {
		return c, true
	}
	for _, name := range roles {
		if !slices.Contains(c.Except, name) {
			c.Only = append(c.Only, name)
		}
	}
	c.Except = nil
	return c, len(c.Only) > 0
}

// with returns a map with one more entry.
func with[V any](m map[string]V, key string, value V) map[string]V {
	m = maps.Clone(m)
	if m == nil {
		m = map[string]V{}
	}
	m[strings.Clone(key)] = value // not the statement's text
	return m
}
