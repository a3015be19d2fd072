package config

import (
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"time"

	"github.com/dpwatch/dpwatch/internal/finding"
)

// Alerts configures where alerts are sent besides the log.
type Alerts struct {
	Receivers []Receiver `yaml:"receivers"`
	// Routes choose the receivers of an alert: the first that matches. Without routes every receiver gets every alert.
	Routes []AlertRoute `yaml:"routes"`
	// Severity is the severity of a violation: the last row whose Excess is reached.
	Severity  []SeverityRow `yaml:"severity"`
	Suspected bool          `yaml:"suspected"` // send alerts before fresh trials confirm a violation
	Link      string        `yaml:"link"`      // base URL of the admin port's pages, for links in alerts; "" = none
	Runbook   string        `yaml:"runbook"`   // URL of docs/alerts.md, to which the kind is added as #kind; "" = none
	Coverage  Coverage      `yaml:"coverage"`
}

// Coverage configures the alert coverage_low.
type Coverage struct {
	Share float64  `yaml:"share"` // of the distinct DP queries that must have an audit; 0 = no alerts
	After Duration `yaml:"after"` // time for which the share is lower before the alert
}

// Receiver is one destination of alerts.
type Receiver struct {
	Name         string   `yaml:"name"`
	Type         string   `yaml:"type"`
	URL          Secret   `yaml:"url"`
	Secret       Secret   `yaml:"secret"`  // signature key of a webhook, routing key of PagerDuty
	Command      []string `yaml:"command"` // of exec: program and arguments; the alert is its standard input
	Headers      []Header `yaml:"headers"`
	Labels       []Label  `yaml:"labels"`                  // added to every alert
	SendResolved *bool    `yaml:"send_resolved,omitempty"` // nil = true
}

// Header is an HTTP header of a receiver's requests.
type Header struct {
	Name  string `yaml:"name"`
	Value Secret `yaml:"value"`
}

// Label is a name and a value that are added to alerts.
type Label struct {
	Name  string `yaml:"name"`
	Value string `yaml:"value"`
}

// AlertRoute sends the alerts that match every field that is set to receivers.
type AlertRoute struct {
	Severity  finding.Severity `yaml:"severity"` // the lowest
	Kind      finding.Kind     `yaml:"kind"`
	Database  string           `yaml:"database"`
	User      string           `yaml:"user"`
	Engine    string           `yaml:"engine"`
	Receivers []string         `yaml:"receivers"`
}

// SeverityRow is the severity of violations whose measured epsilon exceeds the claim by Excess or more: see
// finding.Scale.
type SeverityRow struct {
	Excess   float64          `yaml:"excess"`
	Severity finding.Severity `yaml:"severity"`
}

// ReceiverTypes returns the types of receivers.
func ReceiverTypes() []string {
	return []string{"alertmanager", "webhook", "slack", "pagerduty", "exec", "stdout"}
}

func defaultAlerts() Alerts {
	return Alerts{
		Severity: []SeverityRow{{0, finding.Warning}, {0.5, finding.Error}, {2, finding.Critical}},
		Coverage: Coverage{Share: 0.5, After: Duration(time.Hour)},
	}
}

var (
	receiverName = regexp.MustCompile(`^[a-zA-Z0-9][a-zA-Z0-9_-]{0,62}$`)
	labelName    = regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_]*$`)
)

// alerts validates alerts.
func (s *processSections) alerts(a *Alerts) {
	names := map[string]bool{}
	for i := range a.Receivers {
		r, path := &a.Receivers[i], fmt.Sprintf("alerts.receivers[%d]", i)
		switch {
		case !receiverName.MatchString(r.Name):
			s.add(path+".name", "%q: must be letters, digits, _ and -, at most 63: routes and metrics name the receiver", r.Name)
		case names[r.Name] || r.Name == "log":
			s.add(path+".name", "%q is the name of another receiver", r.Name)
		}
		names[r.Name] = true
		s.receiver(path, r)
	}
	used := map[string]bool{}
	for i, r := range a.Routes {
		s.alertRoute(fmt.Sprintf("alerts.routes[%d]", i), r, names, used)
	}
	for i, r := range a.Receivers {
		if len(a.Routes) > 0 && !used[r.Name] {
			s.add(fmt.Sprintf("alerts.receivers[%d].name", i), "no route leads to %q: add it to alerts.routes, or remove it", r.Name)
		}
	}
	for i, row := range a.Severity {
		path := fmt.Sprintf("alerts.severity[%d]", i)
		s.oneOf(path+".severity", string(row.Severity), texts(finding.Severities())...)
		if !(row.Excess >= 0) || i > 0 && !(row.Excess > a.Severity[i-1].Excess) {
			s.add(path+".excess", "must be at least 0 and more than that of the row before")
		}
	}
	s.httpURL("alerts.link", a.Link)
	s.httpURL("alerts.runbook", a.Runbook)
	if !(a.Coverage.Share >= 0 && a.Coverage.Share <= 1) {
		s.add("alerts.coverage.share", "must be from 0 (no such alerts) to 1")
	}
	if a.Coverage.After < 0 {
		s.add("alerts.coverage.after", "must not be negative")
	}
}

func (s *processSections) receiver(path string, r *Receiver) {
	s.oneOf(path+".type", r.Type, ReceiverTypes()...)
	is := func(types ...string) bool { return slices.Contains(types, r.Type) }
	switch {
	case is("alertmanager", "webhook", "slack") && r.URL == "":
		s.add(path+".url", "missing: the address that receives the alerts, for example https://alerts.example.org/dpwatch or ${file:/run/secrets/url}")
	case is("exec", "stdout") && r.URL != "":
		s.add(path+".url", "does not apply to %s", r.Type)
	default:
		s.httpURL(path+".url", r.URL.Reveal())
	}
	switch {
	case is("webhook", "pagerduty") && r.Secret == "":
		s.add(path+".secret", "missing: the key of a webhook's signatures, or the routing key of PagerDuty; ${file:/run/secrets/key} reads a file")
	case !is("webhook", "pagerduty") && r.Secret != "":
		s.add(path+".secret", "does not apply to %s: use headers for credentials", r.Type)
	}
	switch {
	case is("exec") && (len(r.Command) == 0 || !filepath.IsAbs(r.Command[0])):
		s.add(path+".command", "must be a program with its absolute path, and its arguments")
	case !is("exec") && len(r.Command) > 0:
		s.add(path+".command", "applies to exec only")
	}
	for i, h := range r.Headers {
		if h.Name == "" || is("exec", "stdout") {
			s.add(fmt.Sprintf("%s.headers[%d].name", path, i), "must name an HTTP header, of a receiver with a url")
		}
	}
	for i, l := range r.Labels {
		if !labelName.MatchString(l.Name) {
			s.add(fmt.Sprintf("%s.labels[%d].name", path, i), "%q: must be letters, digits and _, and not begin with a digit", l.Name)
		}
	}
}

func (s *processSections) alertRoute(path string, r AlertRoute, names, used map[string]bool) {
	if r.Severity != "" {
		s.oneOf(path+".severity", string(r.Severity), texts(finding.Severities())...)
	}
	if r.Kind != "" {
		s.oneOf(path+".kind", string(r.Kind), texts(finding.Kinds())...)
	}
	if len(r.Receivers) == 0 {
		s.add(path+".receivers", "missing: the names of receivers")
	}
	for i, name := range r.Receivers {
		if !names[name] {
			s.add(fmt.Sprintf("%s.receivers[%d]", path, i), "%q is not the name of a receiver in alerts.receivers", name)
		}
		used[name] = true
	}
}

// texts returns words as strings.
func texts[T ~string](words []T) (out []string) {
	for _, w := range words {
		out = append(out, string(w))
	}
	return out
}
