package deliver

import (
	"slices"

	"github.com/dpwatch/dpwatch/internal/alert"
	"github.com/dpwatch/dpwatch/internal/finding"
)

// Route sends the alerts that match every field that is set to receivers.
type Route struct {
	Severity  finding.Severity // the lowest
	Kind      finding.Kind
	Database  string
	User      string
	Engine    string
	Receivers []string
}

func (r *Route) matches(m *alert.Message) bool {
	return m.Severity.AtLeast(r.Severity) && (r.Kind == "" || r.Kind == m.Kind) && (r.Database == "" || r.Database == m.Database) &&
		(r.User == "" || slices.Contains(m.Users, r.User)) && (r.Engine == "" || r.Engine == m.Engine || r.Engine == m.Route)
}

// receivers returns the names of the receivers of a message: those of the first route that matches. Without routes it
// has all.
func (o *Options) receivers(m *alert.Message) (names []string) {
	for i := range o.Routes {
		if o.Routes[i].matches(m) {
			names = o.Routes[i].Receivers
			break
		}
	}
	if len(o.Routes) == 0 {
		for i := range o.Receivers {
			names = append(names, o.Receivers[i].Name)
		}
	}
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool {
		r := o.receiver(name)
		return r == nil || m.Status == alert.Ended && !r.SendResolved
	})
}

func (o *Options) receiver(name string) *Receiver {
	for i := range o.Receivers {
		if o.Receivers[i].Name == name {
			return &o.Receivers[i]
		}
	}
	return nil
}
