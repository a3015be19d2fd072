package alert

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/dpwatch/dpwatch/analysis"
	"github.com/dpwatch/dpwatch/internal/curve"
	"github.com/dpwatch/dpwatch/internal/finding"
)

// The values of Message.Status.
const (
	Firing = "firing"
	Ended  = "resolved"
)

// Message is an alert as receivers get it: the state of one condition at one time. It holds no values of rows unless
// the operator allowed them, and no SQL text.
type Message struct {
	ID       string `json:"id"`                 // of the alert: the same from its beginning to its end
	Subject  string `json:"subject"`            // what it is about; one alert at a time fires for a subject
	Delivery string `json:"delivery,omitempty"` // identifies this state of the alert, over all attempts to send it

	Kind     finding.Kind     `json:"kind"`
	Severity finding.Severity `json:"severity"`
	Status   string           `json:"status"`
	Title    string           `json:"title"`
	Detail   string           `json:"detail,omitempty"`
	Action   string           `json:"action,omitempty"` // what to do
	StartsAt time.Time        `json:"starts_at"`
	Updated  time.Time        `json:"updated_at"`
	EndsAt   time.Time        `json:"ends_at,omitzero"`
	Test     bool             `json:"test,omitempty"`

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
	// ClaimCurve is the claim if it is a curve; the claimed epsilon and delta are then the point of it that is refuted.
	ClaimCurve curve.Curve `json:"claim_curve,omitempty"`
	Lower      *float64    `json:"epsilon_lower,omitempty"` // certified
	Estimate   *float64    `json:"epsilon_estimate,omitempty"`
	Confidence *float64    `json:"confidence,omitempty"`
	// Change is the last change of the engine before the violation was found that concerns the query.
	Change *finding.Change `json:"engine_change,omitempty"`

	Link    string `json:"link,omitempty"`
	Runbook string `json:"runbook,omitempty"`
}

// Style says how findings become messages.
type Style struct {
	Engine  string
	Scale   finding.Scale
	Link    string // base URL of the pages; "" = none
	Runbook string // URL of the runbook; "" = none
}

// Message returns the message about a finding at a time. That of a finding that ends an alert has the status Ended; it
// ends the alert with its Subject.
func (s Style) Message(f Finding, now time.Time) Message {
	f.User, f.Database, f.Application, f.Budget = valid(f.User), valid(f.Database), valid(f.Application), f.Budget.valid()
	m := Message{
		Kind: f.Kind, Severity: f.severity(s.Scale), Status: Firing, StartsAt: now, Updated: now, Engine: s.Engine, Route: f.Route, EngineEpoch: f.EngineEpoch,
		Database: f.Database, Users: list(f.User), Applications: list(f.Application),
		Query: f.ID, Fingerprint: f.Group, Summary: f.Summary, Neighbours: list(f.Neighbour), Detail: f.Line.String(),
	}
	switch f.Kind {
	case finding.Violation, finding.Deterministic, finding.FloatingPoint, finding.Unconfirmed:
		m.violation(&f)
	case finding.BudgetExceeded:
		b := f.Budget
		m.Database, m.Users, m.Applications = b.Database, list(b.User), list(b.Application)
		m.Subject = strings.Join([]string{"budget", b.Name, b.User, b.Database, b.Application}, "\x1f")
		m.Title = fmt.Sprintf("the answers to an analyst claim epsilon %s, more than the budget %s allows: %s", short(b.Spent), b.Name, short(b.Epsilon))
		m.Claimed, m.ClaimDelta = number(b.Epsilon), number(b.Delta)
	case finding.UnclaimedRead:
		m.Subject = strings.Join([]string{"read", f.Group, f.User, f.Database}, "\x1f")
		m.Title = "a client reads a protected table without a claim and without a DP function"
	case finding.CopiesDiffer:
		m.Subject, m.Title, m.Detail = "copies "+f.ID, "the answers to a query differ between two copies of the same data: what looks like a leak may belong to the copy", f.Reason
		m.Claimed, m.ClaimDelta, m.ClaimSource = number(f.Epsilon), number(f.Delta), f.Source
	case finding.SessionEnds:
		m.Subject, m.Title, m.Detail = "session "+f.ID, "the engine ends the session of a query on one of two neighbouring datasets alone", f.Reason
		m.Claimed, m.ClaimDelta, m.ClaimSource = number(f.Epsilon), number(f.Delta), f.Source
	case finding.EngineDrift:
		m.Subject, m.Title = "function "+f.Function, "production has another definition of function "+f.Function+" than the shadow database: queries that call it are not audited"
		if f.over() {
			m.Title = "production and the shadow database have the same definition of function " + f.Function + " again, or no audited query calls it any more"
		}
	case finding.CoverageLow, finding.AuditorUnhealthy:
		m.Subject, m.Title, m.Detail = string(m.Kind)+" "+f.Component, f.Condition, f.Reason
	}
	kind := m.Kind
	if kind == finding.FloatingPoint { // the alert is the same if it becomes one about a Violation
		kind = finding.Violation
	}
	m.ID = hash(s.Engine, string(kind), m.Subject, f.EngineEpoch)
	if f.over() {
		m.Status, m.EndsAt = Ended, now
	} else {
		m.Action = f.action()
	}
	if s.Link != "" {
		m.Link = strings.TrimSuffix(s.Link, "/") + f.page()
	}
	if s.Runbook != "" {
		m.Runbook = s.Runbook + "#" + string(m.Kind)
	}
	return m
}

// violation fills in a message about a query's violation, its end, or a suspicion.
func (m *Message) violation(f *Finding) {
	m.Subject = "query " + f.ID
	m.Claimed, m.ClaimDelta, m.ClaimSource, m.ClaimCurve = number(f.Epsilon), number(f.Delta), f.Source, f.Curve
	if f.Kind == finding.Unconfirmed {
		m.Subject, m.Title = "unconfirmed "+f.ID, "trials suggest that a query leaks more than it claims; fresh trials will confirm it or not"
		return
	}
	if f.over() {
		m.Title, m.Detail = "a privacy violation is "+string(f.Status), f.Reason
		return
	}
	m.Title = "answers do not vary and differ between neighbouring datasets: no finite epsilon holds"
	if f.Kind != finding.Deterministic {
		m.Lower, m.Estimate, m.Confidence = number(f.Lower), number(f.Estimate), number(f.Confidence)
		m.Title = fmt.Sprintf("a query leaks epsilon %s and claims %s", f.atLeast(), short(f.Epsilon))
		if f.Curve != "" {
			m.Title = fmt.Sprintf("a query leaks epsilon %s at delta %s and claims the curve %s, which allows %s there",
				f.atLeast(), short(f.Delta), f.Curve, short(f.Epsilon))
		}
	}
	if f.Kind == finding.FloatingPoint {
		m.Title += "; only the lowest bits of its numbers show it"
	}
	if m.Change = f.Change; m.Change != nil {
		found := m.StartsAt
		if !f.Found.IsZero() {
			found = f.Found
		}
		m.Title += "; " + m.Change.Before(found)
	}
}

// atLeast states the lower bound of a violation, never rounded up.
func (f *Finding) atLeast() string {
	return "of " + analysis.AtLeast(analysis.Float(f.Lower), analysis.Float(f.Epsilon))
}

// valid replaces what PostgreSQL does not store as text: clients choose their names, in any encoding.
func valid(name string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(name, "\uFFFD"), "\x00", "\uFFFD")
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
		Kind: finding.Violation, Severity: finding.Info, Status: Firing, Test: true, Engine: s.Engine, StartsAt: now, Updated: now,
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
