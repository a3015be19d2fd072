package tracker

import (
	"iter"
	"maps"

	"github.com/dpwatch/dpwatch/internal/capture"
	"github.com/dpwatch/dpwatch/internal/sqltext"
)

// local is a setting made by SET LOCAL: a value, the default, or a value that is not known.
type local struct {
	value              string
	isDefault, unknown bool
	at                 int // the moment since which it is certain; see doubts
}

// layer is the state of all settings at one moment. Its maps are replaced, never changed.
type layer struct {
	session map[string]string
	local   map[string]local // overrides session until the transaction ends
	doubts  doubts
	temps   temps
}

func (l *layer) setLocal(e sqltext.Effect) {
	if len(l.doubts.calls) > 0 {
		l.doubts.now++
	}
	l.local = with(l.local, e.Name, local{
		value: e.Value, isDefault: e.Action == sqltext.Reset, unknown: e.Action == sqltext.Change, at: l.doubts.now,
	})
}

func (l *layer) setSession(e sqltext.Effect) {
	if _, hidden := l.local[e.Name]; hidden {
		l.local = maps.Clone(l.local)
		delete(l.local, e.Name)
	}
	switch e.Action {
	case sqltext.Change:
		l.doubts.uncertain(e.Name)
		return
	case sqltext.Set:
		l.session = with(l.session, e.Name, e.Value)
	default:
		l.session = maps.Clone(l.session)
		delete(l.session, e.Name)
	}
	l.doubts.certain(e.Name)
}

// unknown records that code of unknown effect ran. What the server reports is resolved by its next report.
func (l *layer) unknown(r reports) {
	l.doubts.call(capture.UnknownCode)
	for name := range r.values {
		l.doubts.certain(name)
		l.doubts.uncertain(name)
	}
	for name := range l.local {
		l.local = with(l.local, name, local{unknown: true})
	}
}

// either records that the state may be another one instead.
func (l *layer) either(other layer) {
	for name := range maps.Collect(concat(l.session, other.session)) {
		v, ok := l.session[name]
		w, also := other.session[name]
		if v != w || ok != also {
			l.doubts.uncertain(name)
		}
	}
	l.doubts.merge(other.doubts)
	l.temps.unknown = l.temps.unknown || !l.temps.same(other.temps)
}

// concat returns the entries of both maps.
func concat[V any](a, b map[string]V) iter.Seq2[string, V] {
	return func(yield func(string, V) bool) {
		for _, m := range []map[string]V{a, b} {
			for k, v := range m {
				if !yield(k, v) {
					return
				}
			}
		}
	}
}
