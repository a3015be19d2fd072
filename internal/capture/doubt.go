package capture

import (
	"slices"
	"strings"
)

// Doubt says what a session can have changed in a way that the proxy cannot follow. The zero Doubt is none.
type Doubt struct {
	Names []string // settings that may have changed, sorted
	Calls []Calls  // what called functions have changed depends on their bodies, which the proxy does not know
	// Temporary is true if the session may have temporary relations besides Query.Temporary.
	Temporary bool
}

// Calls are functions that a session called. All lists are sorted.
type Calls struct {
	Functions []string // names without schemas, and the constants below
	Except    []string // settings that are certain all the same: the session has set them after the latest of these calls
	// Only, unless empty, are the only settings in doubt: the session has reset all others since.
	Only []string
}

// The functions of Calls that are no names. UnknownCode can have changed every setting: it stands for statements that
// were not read, too. UnlistedFunctions are functions that were called, too many to be listed. UnknownFunction can have
// changed the settings of extensions and applications, which have a dot in their names. ImplicitCode is what a
// statement that writes may run without naming it (of triggers, defaults, constraints): it can have created temporary
// relations.
const (
	UnknownCode       = "*"
	UnlistedFunctions = "?"
	UnknownFunction   = "*."
	ImplicitCode      = "!"
)

// AnySetting returns the doubt of a session of which nothing is known.
func AnySetting() Doubt {
	return Doubt{Calls: []Calls{{Functions: []string{UnknownCode}}}, Temporary: true}
}

// None reports whether nothing is in doubt.
func (d Doubt) None() bool { return len(d.Names) == 0 && len(d.Calls) == 0 && !d.Temporary }

// Has reports whether a setting, by its lower-case name, may have changed, provided that the functions of Calls which
// have a name change none.
func (d Doubt) Has(name string) bool {
	if slices.Contains(d.Names, name) {
		return true
	}
	return slices.ContainsFunc(d.Calls, func(c Calls) bool {
		return c.Concerns(name) && (slices.Contains(c.Functions, UnknownCode) ||
			strings.Contains(name, ".") && slices.Contains(c.Functions, UnknownFunction))
	})
}

// Concerns reports whether a setting that one of the functions changes is in doubt.
func (c Calls) Concerns(name string) bool {
	return !slices.Contains(c.Except, name) && (len(c.Only) == 0 || slices.Contains(c.Only, name))
}

// Add returns both doubts together.
func (d Doubt) Add(other Doubt) Doubt {
	if other.None() {
		return d
	}
	names := slices.Concat(d.Names, other.Names)
	slices.Sort(names)
	return Doubt{
		Names: slices.Compact(names), Calls: slices.Concat(d.Calls, other.Calls), Temporary: d.Temporary || other.Temporary,
	}
}

// Without returns the doubt for a statement in which a setting, by its lower-case name, does not matter.
func (d Doubt) Without(name string) Doubt {
	d.Names = slices.DeleteFunc(slices.Clone(d.Names), func(n string) bool { return n == name })
	d.Calls = slices.Clone(d.Calls)
	for i := range d.Calls {
		except := append(slices.Clone(d.Calls[i].Except), name)
		slices.Sort(except)
		d.Calls[i].Except = slices.Compact(except)
	}
	return d
}

// Equal reports whether two doubts are the same.
func (d Doubt) Equal(other Doubt) bool {
	return d.Temporary == other.Temporary && slices.Equal(d.Names, other.Names) && slices.EqualFunc(d.Calls, other.Calls, func(a, b Calls) bool {
		return slices.Equal(a.Functions, b.Functions) && slices.Equal(a.Except, b.Except) && slices.Equal(a.Only, b.Only)
	})
}

// HasUnknownCode reports whether the session ran code of unknown effect, and has not reset all settings since.
func (d Doubt) HasUnknownCode() bool {
	return slices.ContainsFunc(d.Calls, func(c Calls) bool { return slices.Contains(c.Functions, UnknownCode) && len(c.Only) == 0 })
}

// HasRole reports whether the current role may have changed.
func (d Doubt) HasRole() bool { return d.Has("role") || d.Has("session_authorization") }

// IsReported reports whether every server reports a setting to its clients when it has changed, so that calls leave no
// doubt.
func IsReported(name string) bool {
	switch name {
	case "timezone", "datestyle", "intervalstyle", "application_name", "client_encoding", "standard_conforming_strings":
		return true
	}
	return false
}

// size returns the approximate memory of the doubt in bytes.
func (d Doubt) size() int {
	n := 0
	for _, name := range d.Names {
		n += len(name)
	}
	for _, c := range d.Calls {
		n += paramSize
		for _, name := range slices.Concat(c.Functions, c.Except, c.Only) {
			n += len(name)
		}
	}
	return n
}
