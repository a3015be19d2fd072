package deliver

import (
	"slices"
	"time"

	"github.com/dpwatch/dpwatch/internal/alert"
	"github.com/dpwatch/dpwatch/internal/finding"
)

// firing holds the alerts that fire, by subject.
type firing map[string]alert.Message

// change is the result of a message.
type change struct {
	now     alert.Message // the present state of the alert
	changed bool
	send    bool // at the beginning, with a higher severity, and at the end
}

// apply changes the alert with the subject of a message.
func (f firing) apply(m alert.Message) change {
	old, open := f[m.Subject]
	switch {
	case m.Status == alert.Ended && !open:
		return change{now: m}
	case m.Status == alert.Ended:
		delete(f, m.Subject)
		old.Status, old.EndsAt, old.Updated, old.Title, old.Detail, old.Action = m.Status, m.EndsAt, later(m.Updated, old.Updated), m.Title, m.Detail, ""
		return change{old.State(), true, true}
	case !open:
		m = m.State()
		f[m.Subject] = m
		return change{m, true, true}
	}
	other := old.Kind == finding.FloatingPoint && m.Kind != old.Kind // a violation has other evidence now
	c := change{send: other || !old.Severity.AtLeast(m.Severity), changed: m.Kind.Passing()}
	if other {
		old.Kind, old.Runbook = m.Kind, m.Runbook
	} else if m.Kind != old.Kind && m.Kind == finding.FloatingPoint {
		m.Lower, m.Severity, c.send = nil, old.Severity, false // less is no news
	}
	for list, added := range map[*[]string][]string{&old.Users: m.Users, &old.Applications: m.Applications, &old.Neighbours: m.Neighbours} {
		all := union(*list, added)
		c.changed = c.changed || len(all) > len(*list)
		*list = all
	}
	if c.send || worse(m.Lower, old.Lower) {
		c.changed = true
		old.Severity, old.Lower, old.Estimate, old.Title = higher(old.Severity, m.Severity), m.Lower, m.Estimate, m.Title
		if m.Detail != "" {
			old.Detail = m.Detail
		}
	}
	if c.changed {
		old.Updated = later(m.Updated, old.Updated)
		old = old.State()
		f[m.Subject] = old
	}
	c.now = old
	return c
}

func higher(a, b finding.Severity) finding.Severity {
	if a.AtLeast(b) {
		return a
	}
	return b
}

// expired returns the ends of alerts about single events that were last seen before a time.
func (f firing) expired(before, now time.Time) (ends []alert.Message) {
	for _, m := range f {
		if m.Kind.Passing() && m.Updated.Before(before) {
			ends = append(ends, over(m, now, "not seen again"))
		}
	}
	return ends
}

// over returns the message that ends an alert.
func over(m alert.Message, now time.Time, why string) alert.Message {
	m.Status, m.EndsAt, m.Updated, m.Detail = alert.Ended, now, now, why
	return m
}

// mostListed bounds the users and applications that an alert lists.
const mostListed = 20

func union(all, added []string) []string {
	all = slices.Clone(all)
	for _, name := range added {
		if !slices.Contains(all, name) && len(all) < mostListed {
			all = append(all, name)
		}
	}
	return all
}

func worse(a, b *float64) bool { return a != nil && (b == nil || *a > *b) }

// later returns a time that is after old: at least a microsecond, the resolution of the ledger.
func later(t, old time.Time) time.Time {
	if t.After(old) {
		return t
	}
	return old.Add(time.Microsecond)
}
