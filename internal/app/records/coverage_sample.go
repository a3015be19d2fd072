package records

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/dpwatch/dpwatch/internal/app/show"
	"github.com/dpwatch/dpwatch/internal/audit/schedule"
	"github.com/dpwatch/dpwatch/internal/ledger"
	"github.com/dpwatch/dpwatch/rewrite/reasons"
)

// CoverageSample is an example of the statements that are not audited for a reason. It holds no value of a row, and
// only Text holds constants.
type CoverageSample struct {
	User        string    `json:"user"`
	Database    string    `json:"database"`
	Application string    `json:"application,omitempty"`
	Shape       string    `json:"shape,omitempty"`  // without constants and comments; "" = not known
	Detail      string    `json:"detail,omitempty"` // what was found: a function, a table, a setting, a size
	Remedy      string    `json:"remedy,omitempty"` // what to do about this statement
	Text        string    `json:"text,omitempty"`   // the beginning of the statement; only with log.reveal, for those who may read values
	At          time.Time `json:"at"`
}

// samplesOf returns the samples of a reason.
func samplesOf(all []ledger.Sample, reason string) (out []CoverageSample) {
	for i := range all {
		if s := &all[i]; s.Reason == reason {
			out = append(out, CoverageSample{
				User: s.User, Database: s.Database, Application: s.Application, Shape: s.Shape, Detail: s.Detail, Remedy: sampleRemedy(s), Text: s.Text, At: s.At,
			})
		}
	}
	return out
}

// WithoutTexts removes the texts of the samples.
func (c *Coverage) WithoutTexts() {
	for i := range c.Classes {
		for j := range c.Classes[i].Parts {
			for k := range c.Classes[i].Parts[j].Samples {
				c.Classes[i].Parts[j].Samples[k].Text = ""
			}
		}
	}
}

const unknownStatement = "(the statement is not known)"

// Who returns who sent the statement.
func (s *CoverageSample) Who() string {
	who := "user " + cmp.Or(s.User, "(unknown)") + ", database " + cmp.Or(s.Database, s.User)
	if s.Application != "" {
		who += ", application " + s.Application
	}
	return who
}

// What returns the statement, as far as it may be shown.
func (s *CoverageSample) What() string {
	return cmp.Or(s.Text, s.Shape, unknownStatement)
}

// Why returns what was found and what to do about it.
func (s *CoverageSample) Why() string {
	if s.Detail == "" || s.Remedy == "" {
		return s.Detail + s.Remedy
	}
	return s.Detail + ": " + s.Remedy
}

// quoteName returns a name as SQL has it.
func quoteName(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }

// sampleRemedy returns what to do about one statement: what the rewriter found out, or what follows from the reason and
// who sent it.
func sampleRemedy(s *ledger.Sample) string {
	if s.Advice != "" {
		return s.Advice
	}
	set := func(setting, value string) string {
		return fmt.Sprintf("set %s in the client, or: ALTER ROLE %s SET %s = %s; then reconnect", setting, quoteName(s.User), setting, value)
	}
	client := "the client of user " + s.User
	if s.Application != "" {
		client = "application " + s.Application
	}
	switch s.Reason {
	case "client_encoding":
		return set("client_encoding", "'UTF8'")
	case "standard_conforming_strings":
		return set("standard_conforming_strings", "on")
	case "too_long":
		return "raise proxy.max_statement above this size"
	case "over_budget":
		return "let " + client + " send fewer statements before it reads the answers"
	case "unknown_statement":
		return "restart " + client + " if it prepared the statement before dpwatch followed its session; declare cursors in the client, not in functions"
	case ReasonNotFollowed:
		return "reconnect " + client + "; see the log for the session"
	case ReasonQueueFull:
		return "reduce what " + client + " sends at a time"
	case "backlog":
		return "let " + client + " use parameters instead of constants, so that its statements are recognized without being parsed"
	case string(schedule.ShapeSampled):
		return "let " + client + " use fewer distinct constants"
	case "unclaimed_read":
		return fmt.Sprintf("add a rule for user %s to privacy.unclaimed_reads or claims.rules, or take the right to read the tables from it", s.User)
	case string(reasons.OtherDatabase):
		return fmt.Sprintf("set privacy.database to %s if its tables are protected", cmp.Or(s.Database, s.User))
	}
	return remedies()[s.Reason]
}

// writeSamples writes the samples of each reason below the table, without the texts: dpwatch doctor --bundle has this
// output.
func (c Coverage) writeSamples(b *strings.Builder) {
	for _, class := range c.Classes {
		for _, row := range class.Parts {
			if len(row.Samples) == 0 {
				continue
			}
			fmt.Fprintf(b, "\n%s, for example:\n", strings.ReplaceAll(row.Reason, "_", " "))
			for i := range row.Samples {
				s := &row.Samples[i]
				fmt.Fprintf(b, "  %s, %s\n    %s\n", show.Moment(s.At), oneLine(s.Who()), oneLine(cmp.Or(s.Shape, unknownStatement)))
				if why := s.Why(); why != "" {
					fmt.Fprintf(b, "    -> %s\n", oneLine(why))
				}
			}
		}
	}
}

// oneLine replaces line ends, which names and texts of clients may have.
func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }
