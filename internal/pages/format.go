package pages

import (
	"fmt"
	"html/template"
	"math"
	"strings"
	"time"

	"github.com/dpwatch/dpwatch/analysis"
	"github.com/dpwatch/dpwatch/internal/app/show"
	"github.com/dpwatch/dpwatch/internal/read"
)

// functions are those of the templates.
var functions = template.FuncMap{
	"number":  show.Number,
	"short":   func(x analysis.Float) string { return fmt.Sprintf("%.4g", float64(x)) },
	"atleast": atLeast,
	"compare": claimAndBound,
	"known":   func(x analysis.Float) bool { return !math.IsNaN(float64(x)) },
	"percent": func(share float64) string { return fmt.Sprintf("%.3g %%", 100*share) },
	"ago":     ago,
	"moment":  func(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05 UTC") },
	"stamp":   func(t time.Time) string { return t.UTC().Format(time.RFC3339) },
	"words":   func(text string) string { return strings.ReplaceAll(text, "_", " ") },
	"plural":  plural,
	"bar":     bar,
	"badge":   badge,
	"status":  statusOf,
	"linked":  linked,
	"bycause": byCause,
	"inc":     func(i int) int { return i + 1 },
	// What follows comes from clients: the names of tables and users.
	"printable": show.Printable,
	"answers":   func(to []string) string { return show.Printable(read.DestinationsText(to)) },
}

// atLeast states a lower bound; one that a few digits do not distinguish from the claim exceeds it.
func atLeast(bound, claim analysis.Float) string {
	text := analysis.AtLeast(bound, claim)
	number := strings.LastIndexByte(text, ' ') + 1
	return text[:number] + "epsilon " + text[number:]
}

// plural returns a count with its noun: 1 query, 2 queries.
func plural(n any, one, many string) string {
	if fmt.Sprint(n) == "1" {
		return "1 " + one
	}
	return fmt.Sprint(n, " ", many)
}

// ago returns how long ago a time was, in one unit.
func ago(t time.Time) string {
	if t.IsZero() {
		return "never"
	}
	return spell(time.Since(t)) + " ago"
}

// spell says a duration in one unit.
func spell(d time.Duration) string {
	switch {
	case d < time.Minute:
		return "less than a minute"
	case d < time.Hour:
		return plural(int(d.Minutes()), "minute", "minutes")
	case d < 48*time.Hour:
		return plural(int(d.Hours()), "hour", "hours")
	}
	return plural(int(d.Hours()/24), "day", "days")
}

// sentence returns the text of an error, which holds no values, as a sentence.
func sentence(err error) string {
	return sentenceOf(err.Error())
}
