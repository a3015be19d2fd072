package calibrate_test

import (
	"encoding/xml"
	"errors"
	"io"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/dpwatch/dpwatch/analysis"
	"github.com/dpwatch/dpwatch/internal/calibrate"
	"github.com/dpwatch/dpwatch/internal/longtest"
	"github.com/dpwatch/dpwatch/internal/pgtemp/pgtest"
)

// zooReport audits some queries of the zoo.
func zooReport(t *testing.T, o calibrate.ZooOptions) *calibrate.ZooReport {
	t.Helper()
	o.DSN, o.Timeout = pgtest.Database(t), time.Minute
	r, err := calibrate.Zoo(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	var left int
	if err := pgtest.Connect(t, o.DSN).QueryRow(t.Context(), "select count(*) from pg_namespace where nspname like 'dpwatch%'").Scan(&left); err != nil || left != 0 {
		t.Errorf("%d schemas are left, %v", left, err)
	}
	return r
}

// TestZoo: a right mechanism is no false alarm, and a wrong one is found, hoisted and whole. The rate of false alarms
// of each audit is 1e-7.
func TestZoo(t *testing.T) {
	t.Parallel()
	r := zooReport(t, calibrate.ZooOptions{Runs: 1, MaxTrials: 200, Confidence: 1 - 1e-7, Only: []string{"count by noisy", "no row for an empty set"}})
	if faults := r.Faults(); len(r.Rows) != 4 || len(faults) > 0 {
		t.Errorf("%d rows: %q", len(r.Rows), faults)
	}
	for _, row := range r.Rows {
		median, limit := float64(row.Median), float64(row.Limit)
		if row.Runs != 1 || row.Right != math.IsNaN(median) || row.Right != math.IsNaN(limit) || median < limit {
			t.Errorf("%+v", row)
		}
	}
	var b strings.Builder
	if err := r.WriteHTML(&b); err != nil {
		t.Fatal(err)
	}
	checkPage(t, b.String(), "no row for an empty set", "how many false alarms", "Right queries")
}

// checkPage requires that a page is well-formed, holds the texts, and loads nothing.
func checkPage(t *testing.T, page string, texts ...string) {
	t.Helper()
	for _, text := range append(texts, `<figure class="chart">`, "</html>") {
		if !strings.Contains(page, text) {
			t.Errorf("the page has no %q", text)
		}
	}
	d := xml.NewDecoder(strings.NewReader(page))
	d.Strict, d.AutoClose, d.Entity = false, xml.HTMLAutoClose, xml.HTMLEntity
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		start, _ := token.(xml.StartElement)
		for _, a := range start.Attr {
			if (a.Name.Local == "href" || a.Name.Local == "src") && !strings.HasPrefix(a.Value, "#") || start.Name.Local == "script" {
				t.Errorf("<%s %s=%q>", start.Name.Local, a.Name.Local, a.Value)
			}
		}
	}
}

// TestFaults: too many false alarms, or a wrong query that is not found, are faults; a few false alarms are not.
func TestFaults(t *testing.T) {
	t.Parallel()
	none := analysis.Float(math.NaN())
	for name, c := range map[string]struct {
		row    calibrate.Row
		faults int
	}{
		"few":       {calibrate.Row{Right: true, Runs: 20, Violations: 3}, 0},
		"too many":  {calibrate.Row{Right: true, Runs: 20, Violations: 12}, 2}, // by itself and in all
		"found":     {calibrate.Row{Runs: 4, Violations: 2, Median: 7}, 0},
		"not found": {calibrate.Row{Runs: 4, Violations: 1, Median: none}, 1},
	} {
		r := calibrate.ZooReport{Confidence: .95, MaxTrials: 100, Rows: []calibrate.Row{c.row}}
		if faults := r.Faults(); len(faults) != c.faults {
			t.Errorf("%s: %q", name, faults)
		}
	}
}

// TestWholeZoo: the auditor finds every wrong mechanism of the zoo, and is not at fault
// (probability of a false report below 1e-6 for the right ones; a wrong one that is missed would be a
// change of the method, as all need less than a third of the pairs).
func TestWholeZoo(t *testing.T) {
	longtest.Skip(t)
	t.Parallel()
	r := zooReport(t, calibrate.ZooOptions{Runs: 1, MaxTrials: 3000, Confidence: .9999})
	var b strings.Builder
	if err := r.Write(&b); err != nil {
		t.Fatal(err)
	}
	t.Log(b.String())
	if faults := r.Faults(); len(faults) > 0 {
		t.Errorf("%q", faults)
	}
	limits := 0
	for _, row := range r.Rows {
		if !math.IsNaN(float64(row.Limit)) {
			limits++
		}
	}
	if limits != 2*13 {
		t.Errorf("%d queries have a limit", limits)
	}
}
