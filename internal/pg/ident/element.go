package ident

import "strings"

// Element is a column, or values in it, as the configuration spells them: name, name[] (the elements of an array), or
// name->key->key (a key of a JSON value, which may be in objects and, as key[], in arrays).
type Element struct {
	Column string
	Each   bool     // the elements of an array
	Keys   []string // of a JSON value; an empty one = each element of an array
}

// ParseElement splits an element. It is false if a name or key is missing.
func ParseElement(text string) (Element, bool) {
	parts := strings.Split(strings.ReplaceAll(text, "->>", "->"), "->")
	var e Element
	for i, part := range parts {
		part = strings.TrimSpace(part)
		name, each := strings.CutSuffix(part, "[]")
		if i > 0 && len(name) > 1 && name[0] == '\'' && name[len(name)-1] == '\'' {
			name = name[1 : len(name)-1]
		}
		if name == "" {
			return e, false
		}
		if i == 0 {
			e.Column, e.Each = name, each && len(parts) == 1
		} else {
			e.Keys = append(e.Keys, name)
		}
		if each && len(parts) > 1 {
			e.Keys = append(e.Keys, "")
		}
	}
	return e, true
}

// Plain reports whether it is a column as it is.
func (e Element) Plain() bool { return !e.Each && len(e.Keys) == 0 }
