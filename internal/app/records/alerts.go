package records

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/dpwatch/dpwatch/config"
	"github.com/dpwatch/dpwatch/internal/alert/deliver"
	"github.com/dpwatch/dpwatch/internal/app/setup"
	"github.com/dpwatch/dpwatch/internal/app/show"
	"github.com/dpwatch/dpwatch/internal/ledger"
)

// TestedReceiver is the result of a test alert.
type TestedReceiver struct {
	Receiver string `json:"receiver"`
	Type     string `json:"type"`
	Resolved bool   `json:"resolved_sent"`
}

// TestAlert sends a test alert to a receiver of the configuration.
func TestAlert(ctx context.Context, env setup.Environment, c config.Config, name string) (TestedReceiver, error) {
	var names []string
	for _, r := range c.Alerts.Receivers {
		if r.Name != name {
			names = append(names, r.Name)
			continue
		}
		out := setup.AlertReceiver(r)
		if err := deliver.Test(ctx, out, setup.AlertStyle(c), env.Stdout, time.Now()); err != nil {
			return TestedReceiver{}, fmt.Errorf("test alert to receiver %s (%s): %w", name, r.Type, err)
		}
		return TestedReceiver{name, r.Type, out.SendResolved}, nil
	}
	if len(names) == 0 {
		return TestedReceiver{}, errors.New("alerts.receivers is empty: add a receiver to the configuration")
	}
	return TestedReceiver{}, fmt.Errorf("alerts.receivers has no receiver %q: it has %s", name, strings.Join(names, ", "))
}

// Write writes the result as text.
func (t TestedReceiver) Write(w io.Writer) error {
	what := "the test alert"
	if t.Resolved {
		what += " and its end"
	}
	_, err := fmt.Fprintf(w, "receiver %s (%s) accepted %s\n", t.Receiver, t.Type, what)
	return err
}

// Alerts are alerts in the ledger.
type Alerts struct {
	Alerts []ledger.Alert `json:"alerts"`
}

// ListAlerts reads the latest alerts of all engines from the ledger.
func ListAlerts(ctx context.Context, c config.Config, most int) (Alerts, error) {
	l, err := Open(ctx, c)
	if err != nil {
		return Alerts{}, err
	}
	defer l.Close()
	all, err := l.Alerts.Latest(ctx, most)
	if all == nil {
		all = []ledger.Alert{}
	}
	return Alerts{all}, err
}

// Write writes a table.
func (s Alerts) Write(w io.Writer) error {
	if len(s.Alerts) == 0 {
		_, err := io.WriteString(w, "no alerts\n")
		return err
	}
	var b strings.Builder
	table := show.NewTable(&b)
	table.Row("ID", "STATUS", "SEVERITY", "KIND", "ENGINE", "SINCE", "CHANGED", "WAITING", "FAILED", "TITLE")
	for _, a := range s.Alerts {
		table.Row(a.ID[:min(12, len(a.ID))], a.Status, a.Severity, show.Words(a.Kind), a.Engine, show.Moment(a.StartsAt), show.Moment(a.Updated), fmt.Sprint(a.Pending), fmt.Sprint(a.Failed), show.Shortened(a.Title))
	}
	table.Flush()
	_, err := io.WriteString(w, show.Printable(b.String()))
	return err
}

// Alert is one alert and its messages.
type Alert struct {
	ledger.Alert
	Deliveries []ledger.Delivery `json:"deliveries"`
}

// ShowAlert reads the alert whose ID begins with a text.
func ShowAlert(ctx context.Context, c config.Config, id string) (Alert, error) {
	l, err := Open(ctx, c)
	if err != nil {
		return Alert{}, err
	}
	defer l.Close()
	return FindAlert(ctx, l, id)
}

// FindAlert returns an alert of the ledger with its deliveries.
func FindAlert(ctx context.Context, l *ledger.Ledger, id string) (Alert, error) {
	a, deliveries, err := l.Alerts.Find(ctx, id)
	if errors.Is(err, ledger.ErrNoAlert) {
		err = fmt.Errorf("%q: %w; dpwatch alerts list lists the alerts", id, err)
	}
	return Alert{a, deliveries}, err
}

// Write writes the alert as text.
func (s Alert) Write(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n%s, %s, %s, of engine %s\n%s since %s", s.Title, s.ID, show.Words(s.Kind), s.Severity, s.Engine, s.Status, show.Moment(s.StartsAt))
	if s.EndsAt != nil {
		fmt.Fprintf(&b, ", ended %s", show.Moment(*s.EndsAt))
	}
	b.WriteString("\n\n")
	if len(s.Deliveries) == 0 {
		b.WriteString("no messages: no receiver gets this alert\n")
		_, err := io.WriteString(w, show.Printable(b.String()))
		return err
	}
	table := show.NewTable(&b)
	table.Row("RECEIVER", "STATE", "AT", "ATTEMPTS", "LAST ERROR")
	for _, d := range s.Deliveries {
		table.Row(d.Receiver, d.State, show.Moment(d.At), fmt.Sprint(d.Attempts), show.Shortened(d.Error))
	}
	table.Flush()
	_, err := io.WriteString(w, show.Printable(b.String()))
	return err
}

// RetriedAlert is the number of messages that are sent again.
type RetriedAlert struct {
	Alert    string `json:"alert"`
	Messages int    `json:"messages"`
}

// RetryAlert sends the failed messages of an alert again.
func RetryAlert(ctx context.Context, c config.Config, id string) (RetriedAlert, error) {
	l, err := Open(ctx, c)
	if err != nil {
		return RetriedAlert{}, err
	}
	defer l.Close()
	a, err := FindAlert(ctx, l, id)
	if err != nil {
		return RetriedAlert{}, err
	}
	n, err := l.Alerts.Retry(ctx, a.Alert)
	return RetriedAlert{a.ID, n}, err
}

// Write writes the result as text.
func (r RetriedAlert) Write(w io.Writer) error {
	_, err := fmt.Fprintf(w, "alert %s: %d failed messages are sent again\n", r.Alert, r.Messages)
	return err
}
