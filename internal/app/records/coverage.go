package records

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/dpwatch/dpwatch/config"
	"github.com/dpwatch/dpwatch/internal/app/setup"
	"github.com/dpwatch/dpwatch/internal/app/show"
	"github.com/dpwatch/dpwatch/internal/app/status"
	"github.com/dpwatch/dpwatch/internal/audit/view"
	"github.com/dpwatch/dpwatch/internal/ledger"
)

// Coverage is what became of the statements of the traffic: GET /api/coverage, and dpwatch coverage.
type Coverage struct {
	Engines    []string        `json:"engines"`
	Since      time.Time       `json:"since"` // the beginning of an hour
	Until      time.Time       `json:"until"`
	Statements int64           `json:"statements"` // completed by clients: the sum of Classes
	Queries    int64           `json:"queries"`    // distinct DP queries
	Classes    []CoverageClass `json:"classes"`    // all of them, in a fixed order
	Views      []CoverageView  `json:"views,omitempty"`
	Names      string          `json:"names,omitempty"` // which names are not known; "" = all are
}

// CoverageView is a view that draws fresh noise for each query on it, and on which queries are not audited.
type CoverageView struct {
	View string `json:"view"`
	Why  string `json:"why"`
}

// CoverageClass is a part of the statements.
type CoverageClass struct {
	Class      Class         `json:"class"`
	Statements int64         `json:"statements"`
	Share      float64       `json:"share"` // of all statements
	Queries    int64         `json:"queries"`
	Parts      []CoverageRow `json:"parts,omitempty"` // most statements first
}

// CoverageRow is a part of a class: the verdict or state of the audits, or why statements are not audited.
type CoverageRow struct {
	Reason     string `json:"reason"`
	Statements int64  `json:"statements"`
	Queries    int64  `json:"queries,omitempty"`
	Remedy     string `json:"remedy,omitempty"`
	// Samples are a few of the statements that are not audited, the newest first.
	Samples []CoverageSample `json:"samples,omitempty"`
}

// MaxCoveragePeriod bounds the period of a coverage: longer ones would not be a time.
const MaxCoveragePeriod = 100 * 365 * 24 * time.Hour

// allEngines is the name that stands for every engine of a ledger.
const allEngines = "*"

// ReadCoverage reads the coverage of an engine in the ledger of a configuration: "" = the engine of the configuration,
// "*" = all.
func ReadCoverage(ctx context.Context, c config.Config, engine string, period time.Duration) (Coverage, error) {
	o, stored := setup.LedgerOptions(c)
	if !stored {
		return Coverage{}, setup.ErrNoLedger
	}
	if period <= 0 || period > MaxCoveragePeriod {
		return Coverage{}, fmt.Errorf("since %s: must be more than 0, for example 24h", period)
	}
	l, err := ledger.Open(ctx, o)
	if err != nil {
		return Coverage{}, err
	}
	defer l.Close()
	name := cmp.Or(engine, c.EngineName())
	if name == allEngines {
		name = ""
	}
	now := time.Now().UTC()
	v, err := l.Volumes(ctx, name, now.Add(-period))
	if err != nil {
		return Coverage{}, err
	}
	coverage := NewCoverage(v, now)
	if !c.Log.ShowsSQL() {
		coverage.WithoutTexts()
	}
	if c.Privacy.Catalog == "" {
		coverage.Names = view.NamesBeyond
	}
	return coverage, nil
}

// FetchCoverage asks a listener of a running dpwatch for the coverage.
func FetchCoverage(ctx context.Context, t status.Target, engine string, period time.Duration) (Coverage, error) {
	var c Coverage
	text, err := t.Get(ctx, "/api/coverage?"+url.Values{"engine": {engine}, "since": {period.String()}}.Encode())
	if err != nil {
		return c, err
	}
	if err := json.Unmarshal(text, &c); err != nil {
		return c, fmt.Errorf("%s does not answer with a coverage of dpwatch: %w", t.Address, err)
	}
	return c, nil
}

// NewCoverage adds up the statements of a period by class and reason, until now.
func NewCoverage(v ledger.Volumes, now time.Time) Coverage {
	c := Coverage{Engines: v.Engines, Since: v.Since, Until: now}
	for _, class := range classes() {
		c.Classes = append(c.Classes, CoverageClass{Class: class})
	}
	add := func(class Class, row CoverageRow) {
		i := slices.IndexFunc(c.Classes, func(x CoverageClass) bool { return x.Class == class })
		part := &c.Classes[i]
		part.Statements += row.Statements
		part.Queries += row.Queries
		c.Statements += row.Statements
		c.Queries += row.Queries
		if row.Statements > 0 || row.Reason != ledger.Unplaced {
			part.Parts = append(part.Parts, row)
		}
	}
	for _, x := range v.Queries {
		add(classOfQuery(x.Outcome), CoverageRow{Reason: x.Outcome, Statements: x.Statements, Queries: x.Queries, Remedy: remedies()[x.Outcome]})
	}
	for _, x := range v.Skipped {
		add(classOfReason(x.Outcome), CoverageRow{Reason: x.Outcome, Statements: x.Statements, Remedy: remedies()[x.Outcome], Samples: samplesOf(v.Samples, x.Outcome)})
	}
	for i := range c.Classes {
		part := &c.Classes[i]
		part.Share = Share(part.Statements, c.Statements)
		slices.SortStableFunc(part.Parts, func(x, y CoverageRow) int { return cmp.Compare(y.Statements, x.Statements) })
	}
	return c
}

// Share returns n / of; 0 of nothing.
func Share(n, of int64) float64 {
	if of == 0 {
		return 0
	}
	return float64(n) / float64(of)
}

func (c Coverage) of(class Class) CoverageClass {
	for _, x := range c.Classes {
		if x.Class == class {
			return x
		}
	}
	return CoverageClass{Class: class}
}

// Write writes a line with the share of audited DP statements, then the classes and their parts.
func (c Coverage) Write(w io.Writer) error {
	var b strings.Builder
	b.WriteString(c.Headline())
	fmt.Fprintf(&b, "since %s, engine %s\n", show.Moment(c.Since), strings.Join(c.Engines, ", "))
	if c.Names != "" {
		b.WriteString(c.Names + "\n")
	}
	b.WriteString("\n")
	table := show.NewTable(&b)
	table.Row("", "STATEMENTS", "SHARE", "QUERIES", "WHAT TO DO")
	for _, class := range c.Classes {
		if class.Statements == 0 && class.Queries == 0 {
			continue
		}
		table.Row(class.Class.Title(), fmt.Sprint(class.Statements), show.Percent(class.Share), show.Count(class.Queries), "")
		for _, r := range class.Parts {
			table.Row("  "+strings.ReplaceAll(r.Reason, "_", " "), fmt.Sprint(r.Statements), show.Percent(Share(r.Statements, c.Statements)), show.Count(r.Queries), r.Remedy)
		}
	}
	table.Row("all statements", fmt.Sprint(c.Statements), show.Percent(Share(c.Statements, c.Statements)), show.Count(c.Queries), "")
	table.Flush()
	var views [][2]string
	for _, v := range c.Views {
		views = append(views, [2]string{v.View, v.Why})
	}
	show.Section(&b, "views that draw noise; queries on them are not audited: create them in every copy", views)
	c.writeSamples(&b)
	_, err := io.WriteString(w, show.Printable(b.String()))
	return err
}

// Headline returns the share of the statements that could be DP queries and are audited.
func (c Coverage) Headline() string {
	audited, progress := c.of(classAudited), c.of(classProgress)
	relevant := c.Statements - c.of(classOther).Statements
	if relevant == 0 {
		return "No statement that may be a DP query was captured.\n"
	}
	found := ""
	for _, r := range audited.Parts {
		if r.Reason == "violation" {
			found = fmt.Sprintf(" Queries that violate their claim: %d.", r.Queries)
		}
	}
	return fmt.Sprintf("%s of the statements that may be DP queries are audited, %s are being audited, %s are not.%s\n",
		show.Percent(Share(audited.Statements, relevant)), show.Percent(Share(progress.Statements, relevant)),
		show.Percent(Share(relevant-audited.Statements-progress.Statements, relevant)), found)
}
