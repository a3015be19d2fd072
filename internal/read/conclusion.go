package read

import (
	"fmt"
	"io"
	"math"
	"strings"
	"text/tabwriter"

	"github.com/dpwatch/dpwatch/analysis"
	"github.com/dpwatch/dpwatch/internal/app/show"
	"github.com/dpwatch/dpwatch/internal/audit/timing"
	"github.com/dpwatch/dpwatch/internal/recorded"
	"github.com/dpwatch/dpwatch/replay/hoisting"
)

// Conclusion is the result of a command. Its JSON form is a contract with scripts.
type Conclusion struct {
	analysis.Report
	SQL *SQLPair `json:"sql,omitempty"`
	// Queries is the number of statements of a sequence, 0 for a single query.
	Queries int `json:"queries,omitempty"`
	// Neighbour is the schema that the report is about, Neighbours the result of each if there are several.
	Neighbour  string      `json:"neighbour,omitempty"`
	Neighbours []Neighbour `json:"neighbours,omitempty"`
	// OpeningTrials is the number of trials on D0 that were the first of their sessions; Report.Trials does not count
	// them.
	OpeningTrials int `json:"opening_trials,omitempty"`
	// Recreated reports that the copies were made anew for each pair of trials; nil if nothing was replayed.
	Recreated *bool `json:"recreated,omitempty"`
	// Hoisting is nil if it is disabled, and if nothing was replayed.
	Hoisting *hoisting.Report `json:"hoisting,omitempty"`
	// Reads is what the first trials of each world read; nil if nothing was replayed.
	Reads *Reads `json:"reads,omitempty"`
	// Timing compares the latencies on D0 and on Neighbour: a side channel, which the verdict is not about. nil = they
	// were not compared.
	Timing *timing.Report `json:"timing,omitempty"`
	// Shrunk are smaller copies on which the violation shows; nil if none were asked for.
	Shrunk *Shrunk `json:"shrunk,omitempty"`
	// Key and Summary are those of the query, of rewrite.Plan; for what is not printed with the report.
	Key     string `json:"-"`
	Summary string `json:"-"`
	// Issue is the violation for the maintainers of the engine; nil without one, and if it was not asked for.
	Issue *Issue `json:"-"`
	// Input describes how recorded results were read; nil for results of replays.
	Input *InputReport `json:"input,omitempty"`
}

// Reads is what trials read.
type Reads struct {
	// Tables are the tables that trials of each world read, as schema.table, by the schema of the world's copies.
	Tables map[string][]string `json:"tables"`
	// Unverified says what could not be verified; "" = trials of each world read its copies alone.
	Unverified string `json:"unverified"`
	// Beside says what trials read, or may read, that is the same in all worlds.
	Beside []string `json:"beside,omitempty"`
}

// InputReport describes how the files of recorded results were read.
type InputReport struct {
	D0 recorded.Input `json:"d0"`
	D1 recorded.Input `json:"d1"`
	// Seed is the seed of the random order in which the results were analyzed; nil for the order of the files.
	Seed *uint64 `json:"seed"`
}

// Shown returns the conclusion with or without the values of rows.
func (c Conclusion) Shown(values bool) Conclusion {
	if values {
		c.Report = c.Report.Reveal()
	}
	return c
}

// Write writes the conclusion as text.
func (c Conclusion) Write(w io.Writer) error {
	r := c.Report
	var b strings.Builder
	fmt.Fprintln(&b, ofSequence(Sentence(r), c.Queries))
	table := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	row := func(name, format string, args ...any) {
		fmt.Fprintf(table, "  %s\t%s\n", name, fmt.Sprintf(format, args...))
	}
	if math.IsNaN(float64(r.Claimed.Epsilon)) {
		row("claimed", "nothing")
	} else {
		row("claimed", "%s", ClaimedText(r.Claimed))
	}
	if c.Input != nil {
		row("D0 read as", "%s", c.Input.D0.String())
		row("D1 read as", "%s", c.Input.D1.String())
		if seed := c.Input.Seed; seed != nil {
			row("order", "random, seed %d", *seed)
		}
	}
	row("trials", "%d on D0, %d on D1", r.Trials.D0, r.Trials.D1)
	if c.OpeningTrials > 0 {
		row("first of a session", "%d more on D0", c.OpeningTrials)
	}
	if len(c.Neighbours) > 1 {
		row("neighbour", "%s has the strongest evidence, of %d", c.Neighbour, len(c.Neighbours))
	}
	row("epsilon lower bound", "%s at confidence %g%s", lowerText(r), r.Confidence, atDelta(r.Claimed))
	if r.CurveLower != "" {
		row("curve lower bound", "%s (claimed %s)", r.CurveLower, r.Claimed.Curve)
	}
	row("epsilon estimate", "%s (buckets, no confidence statement)", show.Estimate(r))
	row("evidence", "%s nats", show.Number(r.WealthLog))
	if r.DetectedAt != nil {
		row("found after", "%d pairs", *r.DetectedAt)
	}
	if c := r.Confirmation; c != nil {
		row("confirmation", "%s after %d pairs on fresh sessions (%d pairs before)", strings.ReplaceAll(string(c.State), "_", " "), c.Pairs, c.After)
	}
	switch anew := c.Recreated; {
	case anew == nil:
	case *anew:
		row("copies", "made anew for each pair of trials")
	case r.Control != nil && r.Control.Recreated:
		row("copies", "made anew between the first trials and their confirmation; noise of few values that is drawn once for each copy is not excluded (dpwatch audit --recreate)")
	case r.Verdict == analysis.Violation:
		row("copies", "not made anew: noise of few values that is drawn once for each copy is not excluded (dpwatch audit --recreate)")
	}
	writeControl(row, r)
	if m := r.Measurement; m != nil {
		row("measurement", "%s after %d pairs; the violation was found at %s", measurementWords[m.State], m.Pairs, analysis.LowerText(m.ReportedLower, r.Claimed.Epsilon))
	}
	if d := r.Deterministic; d != nil {
		row("deterministic", "%s", d.Description)
	}
	if cp := r.ClopperPearson; cp != nil {
		row("fixed budget", "epsilon %s or more (Clopper-Pearson, on %d trials a side)", analysis.LowerText(cp.Epsilon, r.Claimed.Epsilon), cp.Trials)
	}
	writeFinding(row, r)
	if r.Control.Blocks() {
		row("why", "likely: %s", causeOfCopy)
	}
	if least := float64(r.MinimalDetectable); !math.IsNaN(least) {
		row("would have been found", "a true epsilon of at least %.3g, with 90 %% probability", least)
	}
	if h := c.Hoisting; h != nil && h.Hoisted {
		row("hoisted", "%d of %d rounds, %.3g times as fast", h.HoistedRounds, h.HoistedRounds+h.UnmodifiedRounds, h.SpeedUp)
		if h.MinimalDetectable > 0 {
			row("would have shown hoisted", "a true epsilon of at least %.3g, with 90 %% probability", h.MinimalDetectable)
		}
	}
	if t := c.Timing; t != nil {
		row("latency", "%s", timingText(t))
	}
	for _, warning := range r.Warnings {
		row("note", "%s", warning)
	}
	if c.Shrunk != nil {
		row("smaller copies", "%s", c.Shrunk.sentence())
	}
	if err := table.Flush(); err != nil {
		return err
	}
	if c.Shrunk != nil {
		if err := c.Shrunk.write(&b); err != nil {
			return err
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// lowerText formats the lower bound of a report.
func lowerText(r analysis.Report) string {
	return analysis.LowerText(r.EpsilonLower, r.Claimed.Epsilon)
}

// timingText says what the latency of an answer shows.
func timingText(t *timing.Report) string {
	if !t.Differs {
		return fmt.Sprintf("no difference found in %d pairs (median %.3g ms on D0, %.3g ms on D1)", t.Pairs, 1000*t.Medians[0], 1000*t.Medians[1])
	}
	return fmt.Sprintf("a side channel: from the latency of one answer, the world is guessed right with a probability of at least %.2f (a coin: 0.5), certified at confidence %g (%d pairs, median %.3g ms on D0, %.3g ms on D1); the claim does not cover it",
		t.GuessLower, t.Confidence, t.Pairs, 1000*t.Medians[0], 1000*t.Medians[1])
}

var measurementWords = map[analysis.MeasurementState]string{
	analysis.MeasurementRunning:   "running",
	analysis.Measured:             "ended, as the bound stopped growing,",
	analysis.MeasurementExhausted: "ended with its budget",
	analysis.MeasurementUnsound:   "dropped, as the worlds changed or trials depend on each other,",
}

// Sentence returns the verdict as a sentence.
func Sentence(r analysis.Report) string {
	switch r.Verdict {
	case analysis.Violation:
		if r.Deterministic != nil && r.DetectedAt == nil {
			return "VIOLATION: the answers of this query are deterministic and differ between D0 and D1; this says nothing about an epsilon." + because(r.Reason)
		}
		if c := r.Claimed.Curve; c != "" {
			return fmt.Sprintf("VIOLATION: this query leaks more than the claimed curve %s allows.%s", c, because(r.Reason))
		}
		return fmt.Sprintf("VIOLATION: this query leaks more than the claimed epsilon %g.%s", float64(r.Claimed.Epsilon), because(r.Reason))
	case analysis.NoEvidence:
		return "No evidence of a violation within this budget. That is not a proof of privacy." + because(r.Reason)
	case "":
		return "No verdict yet." + because(r.Reason)
	default:
		return "Inconclusive." + because(r.Reason)
	}
}

// because returns a reason as a sentence that begins with a space; "" without one.
func because(reason string) string {
	if reason == "" {
		return ""
	}
	return " Reason: " + reason + "."
}

// ofSequence returns the sentence of a verdict about a sequence of n queries; n = 0 for a single query.
func ofSequence(sentence string, n int) string {
	if n == 0 {
		return sentence
	}
	return strings.NewReplacer(
		"the answers of this query are", fmt.Sprintf("the answers of these %d queries together are", n),
		"this query leaks", fmt.Sprintf("the answers of these %d queries together leak", n),
	).Replace(sentence)
}
