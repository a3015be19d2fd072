package records

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/user"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/dpwatch/dpwatch/analysis"
	"github.com/dpwatch/dpwatch/config"
	"github.com/dpwatch/dpwatch/internal/app/setup"
	"github.com/dpwatch/dpwatch/internal/app/show"
	"github.com/dpwatch/dpwatch/internal/ledger"
	"github.com/dpwatch/dpwatch/internal/read"
)

// AcceptOptions are the flags of dpwatch audits accept.
type AcceptOptions struct {
	ID       string // the beginning of an audit's id or key
	Until    string // a date or a time
	Reason   string
	Operator string // "" = the user of this process
	Revoke   bool
}

// maxReason bounds the reason of an action, in bytes.
const maxReason = 2000

// Decision is what an operator decided about a violation.
type Decision struct {
	ID       string     `json:"id"`
	Key      string     `json:"key"`
	Engine   string     `json:"engine"`
	Summary  string     `json:"summary"`
	Action   string     `json:"action"` // accept or revoke
	Operator string     `json:"operator"`
	Until    *time.Time `json:"until,omitempty"`
	Reason   string     `json:"reason"`
}

// Accept records in the ledger that a violation is accepted, or that it is not any more.
func Accept(ctx context.Context, c config.Config, o AcceptOptions) (Decision, error) {
	var until time.Time
	var err error
	switch {
	case strings.TrimSpace(o.Reason) == "":
		return Decision{}, errors.New("--reason is missing: say why, for those who read the ledger later")
	case len(o.Reason) > maxReason || !utf8.ValidString(o.Reason) || strings.ContainsRune(o.Reason, 0):
		return Decision{}, fmt.Errorf("--reason: must be text of at most %d bytes", maxReason)
	case o.Revoke && o.Until != "":
		return Decision{}, errors.New("--until is for an acceptance: give it or --revoke, not both")
	case !o.Revoke && o.Until == "":
		return Decision{}, errors.New("--until is missing: give the last day of the acceptance, for example --until " + time.Now().AddDate(0, 1, 0).Format(time.DateOnly))
	case !o.Revoke:
		if until, err = parseUntil(o.Until); err != nil {
			return Decision{}, err
		}
	}
	l, s, err := FindInLedgers(ctx, c, o.ID)
	if err != nil {
		return Decision{}, err
	}
	defer l.Close()
	d := Decision{ID: s.ID(), Key: s.Key, Engine: s.Engine, Summary: s.Summary, Action: read.ActionAccept, Operator: Operator(o.Operator), Until: &until, Reason: o.Reason}
	if o.Revoke {
		d.Action, d.Until = read.ActionRevoke, nil
		err = l.Actions.Revoke(ctx, s.Engine, s.Key, d.Operator, d.Reason)
	} else {
		err = l.Actions.Accept(ctx, s.Engine, s.Key, d.Operator, d.Reason, until)
	}
	switch {
	case errors.Is(err, ledger.ErrNoViolation):
		return d, fmt.Errorf("audit %s cannot be accepted: it has no violation (%s)", d.ID, show.Words(cmp.Or(s.Verdict, s.State, "not begun")))
	case errors.Is(err, ledger.ErrNotAccepted):
		return d, fmt.Errorf("audit %s is not accepted: there is nothing to revoke; dpwatch audits accept --list lists what is", d.ID)
	case errors.Is(err, ledger.ErrPast):
		return d, fmt.Errorf("--until %s: has passed already by the ledger's clock; give a later date", o.Until)
	}
	return d, err
}

// parseUntil reads a date, whose end in UTC it returns, or a time.
func parseUntil(text string) (time.Time, error) {
	if day, err := time.Parse(time.DateOnly, text); err == nil {
		return day.AddDate(0, 0, 1), nil
	}
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return t, fmt.Errorf("--until %q: must be a date such as 2027-01-31, to whose end in UTC the acceptance lasts, or a time such as 2027-01-31T12:00:00Z", text)
	}
	return t, nil
}

// Operator returns the name of who runs a command, unless it was given.
func Operator(given string) string {
	if given != "" {
		return given
	}
	name, host := "unknown", "unknown"
	if u, err := user.Current(); err == nil {
		name = u.Username
	}
	if h, err := os.Hostname(); err == nil {
		host = h
	}
	return name + "@" + host
}

// Write writes the decision as text.
func (d Decision) Write(w io.Writer) error {
	text := fmt.Sprintf("audit %s: its violation is not accepted any more: it sends alerts again\n", d.ID)
	if d.Until != nil {
		text = fmt.Sprintf("audit %s: its violation is accepted until %s, or until the engine changes: it sends no alerts\n", d.ID, show.Moment(*d.Until))
	}
	_, err := io.WriteString(w, show.Printable(text))
	return err
}

// Acceptances are the violations that operators have accepted.
type Acceptances struct {
	Accepted []ledger.Acceptance `json:"accepted"`
}

// AcceptedViolations reads the acceptances of all engines from the ledger.
func AcceptedViolations(ctx context.Context, c config.Config) (Acceptances, error) {
	all := []ledger.Acceptance{}
	for _, one := range setup.Ledgers(c) {
		l, err := Open(ctx, one)
		if err != nil {
			return Acceptances{}, err
		}
		some, err := l.Acceptances(ctx, "")
		l.Close()
		if err != nil {
			return Acceptances{}, err
		}
		all = append(all, some...)
	}
	return Acceptances{all}, nil
}

// Write writes a table.
func (a Acceptances) Write(w io.Writer) error {
	if len(a.Accepted) == 0 {
		_, err := io.WriteString(w, "no accepted violations\n")
		return err
	}
	var b strings.Builder
	table := show.NewTable(&b)
	table.Row("ID", "ENGINE", "UNTIL", "LOWER BOUND", "ACCEPTED BY", "ON", "REASON", "SUMMARY")
	for _, c := range a.Accepted {
		bound := "-"
		if c.Lower != nil {
			bound = show.Lower(analysis.Float(*c.Lower))
		}
		table.Row(c.Key[:min(12, len(c.Key))], c.Engine, show.Moment(c.Until), bound, c.Operator, show.Moment(c.At), show.Shortened(c.Reason), show.Shortened(c.Summary))
	}
	table.Flush()
	_, err := io.WriteString(w, show.Printable(b.String()))
	return err
}
