package tracker

import (
	"maps"
	"slices"
	"strings"

	"github.com/dpwatch/dpwatch/internal/capture"
)

// view holds the settings as captured queries report them.
type view struct {
	settings map[string]string
	app      string
	doubt    capture.Doubt
	temps    temps
}

// same reports whether two views are equal; v may be nil.
func (v *view) same(other *view) bool {
	return v == other || v != nil && v.app == other.app && v.doubt.Equal(other.doubt) && maps.Equal(v.settings, other.settings) && v.temps.same(other.temps)
}

// since returns the doubt of a statement that was planned under v, nil if that is not known, and computed rows under
// now: settings that differ may be either, but custom ones, which only functions read, when they compute a row.
func (v *view) since(now *view) capture.Doubt {
	switch {
	case v.same(now):
		return capture.Doubt{}
	case v == nil:
		return capture.AnySetting()
	}
	d := capture.Doubt{Temporary: !v.temps.same(now.temps)}
	for name := range maps.Collect(concat(v.settings, now.settings)) {
		if isCustom(name) {
			continue
		}
		before, ok := v.settings[name]
		after, still := now.settings[name]
		if before != after || ok != still {
			d.Names = append(d.Names, name)
		}
	}
	slices.Sort(d.Names)
	if v.doubt.Equal(now.doubt) {
		return d
	}
	planned := v.doubt
	planned.Names = slices.DeleteFunc(slices.Clone(planned.Names), isCustom)
	return d.Add(planned)
}

// isCustom reports whether a setting is one of an extension or an application.
func isCustom(name string) bool { return strings.Contains(name, ".") }

// current returns the settings in force. The view is shared and must not be changed.
func (s *settings) current() *view {
	if s.view != nil {
		return s.view
	}
	m := maps.Clone(s.now.session)
	for name, v := range s.now.local {
		if v.isDefault {
			delete(m, name)
		} else {
			m[name] = v.value
		}
	}
	v := &view{app: m["application_name"], doubt: s.now.doubts.report(s.now.local, s.now.temps.unknown), temps: s.now.temps}
	delete(m, "application_name")
	delete(m, "client_encoding")
	if len(m) > 0 {
		v.settings = m
	}
	s.view = v
	return v
}
