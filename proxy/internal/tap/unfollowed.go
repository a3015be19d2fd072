package tap

import (
	"cmp"
	"slices"
	"time"

	"github.com/dpwatch/dpwatch/internal/capture"
	"github.com/dpwatch/dpwatch/proxy/internal/tracker"
)

// Unfollowed is an open session whose statements are not captured at present.
type Unfollowed struct {
	Session                     uint64
	User, Database, Application string // of its startup
	Reason                      tracker.Off
	Since                       time.Time
}

// Unfollowed returns the sessions that are not followed at present, the first ones first.
func (d *Drainer) Unfollowed() []Unfollowed {
	d.mu.Lock()
	list := make([]Unfollowed, 0, len(d.unfollowed))
	for _, u := range d.unfollowed {
		list = append(list, u)
	}
	d.mu.Unlock()
	slices.SortFunc(list, func(x, y Unfollowed) int { return cmp.Or(x.Since.Compare(y.Since), cmp.Compare(x.Session, y.Session)) })
	return list
}

// follow notes whether a session is followed. Reason is why it is not, or tracker.On.
func (d *Drainer) follow(t *Session, reason tracker.Off) {
	if reason == t.noted {
		return
	}
	t.noted = reason
	d.mu.Lock()
	defer d.mu.Unlock()
	if reason == tracker.On {
		delete(d.unfollowed, t)
		return
	}
	u := Unfollowed{Session: t.id, User: t.startup.User, Database: t.startup.Database, Application: t.startup.ApplicationName, Reason: reason, Since: time.Now()}
	if former, ok := d.unfollowed[t]; ok {
		u.Since = former.Since
	}
	d.unfollowed[t] = u
	d.sample(u)
}

// Reasons of samples of sessions, as the coverage names them.
const (
	sampleNotFollowed = "session_not_followed" // until the session ends
	sampleGap         = "over_budget"          // until the session is idle
)

// sample adds a sample of a session whose statements are not captured. Its statements are not known.
func (d *Drainer) sample(u Unfollowed) {
	reason := sampleNotFollowed
	switch u.Reason {
	case tracker.OffReplication: // has no queries
		return
	case tracker.OffOverflow, tracker.OffPairing:
		reason = sampleGap
	}
	if d.opts.Samples.Wants(reason, u.User, u.Database, u.Application) {
		d.opts.Samples.Add(capture.Sample{Reason: reason, User: u.User, Database: u.Database, Application: u.Application, Detail: u.Reason.String(), At: u.Since})
	}
}
