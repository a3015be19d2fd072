package alert

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math"
	"strings"
	"time"
)

// Severity is how urgent an alert is, in PagerDuty's words.
type Severity string

// The severities, the lowest first.
const (
	Info     Severity = "info"
	Warning  Severity = "warning"
	Error    Severity = "error"
	Critical Severity = "critical"
)

// AtLeast reports whether s is least or a higher severity; every severity is at least "".
func (s Severity) AtLeast(least Severity) bool { return s.rank() >= least.rank() }

func (s Severity) rank() int {
	return map[Severity]int{Info: 1, Warning: 2, Error: 3, Critical: 4}[s]
}

// The values of Message.Status.
const (
	Firing = "firing"
	Ended  = "resolved"
)

// Message is an alert as receivers get it: the state of one condition at one time. It holds no values of rows unless the
// operator allowed them, and no SQL text.
type Message struct {
	ID       string `json:"id"`                 // of the alert: the same from its beginning to its end
	Subject  string `json:"subject"`            // what it is about; one alert at a time fires for a subject
	Delivery string `json:"delivery,omitempty"` // identifies this state of the alert, over all attempts to send it

	Kind     string    `json:"kind"`
	Severity Severity  `json:"severity"`
	Status   string    `json:"status"`
	Title    string    `json:"title"`
	Detail   string    `json:"detail,omitempty"`
	StartsAt time.Time `json:"starts_at"`
	Updated  time.Time `json:"updated_at"`
	EndsAt   time.Time `json:"ends_at,omitzero"`
	Test     bool      `json:"test,omitempty"`

	Engine       string   `json:"engine"`
	Route        string   `json:"route,omitempty"`
	EngineEpoch  string   `json:"engine_epoch,omitempty"`
	Database     string   `json:"database,omitempty"`
	Users        []string `json:"users,omitempty"`
	Applications []string `json:"applications,omitempty"`

	Query       string   `json:"query_id,omitempty"`
	Fingerprint string   `json:"fingerprint,omitempty"`
	Summary     string   `json:"query_summary,omitempty"`
	Neighbours  []string `json:"neighbours,omitempty"`
	Claimed     *float64 `json:"epsilon_claimed,omitempty"`
	ClaimDelta  *float64 `json:"delta_claimed,omitempty"`
	ClaimSource string   `json:"claim_source,omitempty"`
	Lower       *float64 `json:"epsilon_lower,omitempty"` // certified
	Confidence  *float64 `json:"confidence,omitempty"`

	Link    string `json:"link,omitempty"`
	Runbook string `json:"runbook,omitempty"`
}

// Kinds returns the kinds of messages.
func Kinds() []string {
	return []string{"violation", "suspected", "deterministic", "engine_drift", "budget_exceeded", "unclaimed_read", "coverage_low", "auditor_unhealthy"}
}

// Passing reports whether alerts of a kind are about single events: no finding ends them.
func Passing(kind string) bool {
	return kind == "engine_drift" || kind == "budget_exceeded" || kind == "unclaimed_read"
}

// Excess is a row of the table of severities: violations whose bound exceeds the claim by Least or more have the severity.
type Excess struct {
	Least    float64
	Severity Severity
}

// Style says how findings become messages.
type Style struct {
	Engine  string
	Table   []Excess // ascending
	Link    string   // base URL of the pages; "" = none
	Runbook string   // URL of the runbook; "" = none
}

// Message returns the message about a finding at a time. That of a Resolved finding has the status Ended and no ID: it ends the alert
// with its Subject.
func (s Style) Message(f Finding, now time.Time) Message {
	m := Message{
		Kind: f.messageKind(), Status: Firing, StartsAt: now, Updated: now, Engine: s.Engine, Route: f.Route, EngineEpoch: f.EngineEpoch,
		Database: f.Database, Users: list(f.User), Applications: list(f.Application),
		Query: f.ID, Fingerprint: f.Group, Summary: f.Summary, Neighbours: list(f.Neighbour), Detail: f.Line.String(),
	}
	m.Severity = Warning
	switch f.Kind {
	case Violation, Resolved, Suspected:
		s.violation(&m, f)
	case BudgetExceeded:
		b := f.Budget
		m.Severity, m.Database, m.Users, m.Applications = Error, b.Database, list(b.User), list(b.Application)
		m.Subject = strings.Join([]string{"budget", b.Name, b.User, b.Database, b.Application}, "\x1f")
		m.Title = fmt.Sprintf("the answers to an analyst claim epsilon %s, more than the budget %s allows: %s", short(b.Spent), b.Name, short(b.Epsilon))
		m.Claimed, m.ClaimDelta = number(b.Epsilon), number(b.Delta)
	case UnclaimedRead:
		m.Subject = strings.Join([]string{"read", f.Group, f.User, f.Database}, "\x1f")
		m.Title = "a client reads a protected table without a claim and without a DP function"
	case FunctionDiffers:
		m.Subject, m.Title = "function "+f.Function, "production has another definition of function "+f.Function+" than the shadow database: queries that call it are not audited"
	case CoverageLow, AuditorUnhealthy:
		m.Subject, m.Title, m.Detail = m.Kind+" "+f.Component, f.Condition, f.Reason
		if f.Kind == AuditorUnhealthy {
			m.Severity = Critical
		}
	}
	if f.Over {
		m.Status, m.EndsAt = Ended, now
	}
	m.ID = hash(s.Engine, m.Kind, m.Subject, f.EngineEpoch)
	if s.Link != "" {
		m.Link = strings.TrimSuffix(s.Link, "/") + "/"
		if f.ID != "" {
			m.Link += "api/ledger/audits/" + f.ID
		}
	}
	if s.Runbook != "" {
		m.Runbook = s.Runbook + "#" + m.Kind
	}
	return m
}

// violation fills in a message about a query's violation, its end, or a suspicion.
func (s Style) violation(m *Message, f Finding) {
	m.Subject = "query " + f.ID
	m.Claimed, m.ClaimDelta, m.ClaimSource = number(f.Epsilon), number(f.Delta), f.Source
	m.Title = "answers do not vary and differ between neighbouring datasets: no finite epsilon holds"
	if len(s.Table) > 0 {
		m.Severity = s.Table[len(s.Table)-1].Severity
	}
	if !f.Deterministic {
		m.Lower, m.Confidence, m.Severity = number(f.Lower), number(f.Confidence), s.severity(f.Lower-f.Epsilon)
		m.Title = fmt.Sprintf("a query leaks epsilon of at least %s and claims %s", short(f.Lower), short(f.Epsilon))
	}
	switch f.Kind {
	case Resolved:
		m.Status, m.EndsAt = Ended, m.Updated
		m.Title, m.Detail = "a privacy violation is resolved", f.Reason
	case Suspected:
		m.Subject, m.Severity = "suspected "+f.ID, Info
		m.Title, m.Lower, m.Confidence = "trials suggest that a query leaks more than it claims; fresh trials will confirm it or not", nil, nil
	}
}

func (s Style) severity(excess float64) Severity {
	severity := Info
	for _, row := range s.Table {
		if excess >= row.Least {
			severity = row.Severity
		}
	}
	return severity
}

// messageKind returns the kind of the messages about a finding.
func (f Finding) messageKind() string {
	switch {
	case f.Kind == FunctionDiffers:
		return "engine_drift"
	case f.Kind != Violation && f.Kind != Resolved:
		return string(f.Kind)
	case f.Deterministic:
		return "deterministic"
	}
	return "violation"
}

// hash returns an identifier of 32 hexadecimal digits.
func hash(parts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x1f")))
	return hex.EncodeToString(sum[:16])
}

// State returns m with the identifier of its present state.
func (m Message) State() Message {
	m.Delivery = hash(m.ID, m.Status, m.Updated.UTC().Format(time.RFC3339Nano))
	return m
}

// TestMessage returns a message that is marked as a test.
func (s Style) TestMessage(now time.Time) Message {
	m := Message{
		Kind: "violation", Severity: Info, Status: Firing, Test: true, Engine: s.Engine, StartsAt: now, Updated: now,
		Subject: "test", Title: "test alert of dpwatch: no action is needed",
	}
	m.ID = hash(s.Engine, "test", now.UTC().Format(time.RFC3339Nano))
	return m.State()
}

func list(text string) []string {
	if text == "" {
		return nil
	}
	return []string{text}
}

// number returns a pointer to a finite number, for JSON.
func number(v float64) *float64 {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return nil
	}
	return &v
}

func short(v float64) string { return fmt.Sprintf("%.3g", v) }
