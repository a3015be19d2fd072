package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/dpwatch/dpwatch/config"
	"github.com/dpwatch/dpwatch/replay/neighbours"
)

// writePlan prints what create or refresh would do. If there are faults, it returns an error with their number; the
// faults themselves are in the output.
func writePlan(ctx context.Context, env environment, o neighbours.Options, refresh, asJSON bool) error {
	p, err := neighbours.MakePlan(ctx, o, refresh)
	if err != nil {
		return err
	}
	if asJSON {
		err = json.NewEncoder(env.Stdout).Encode(planJSON(p))
	} else {
		err = printPlan(env.Stdout, p)
	}
	if err != nil || len(p.Faults) == 0 {
		return err
	}
	return fmt.Errorf("%d faults: nothing was created", len(p.Faults))
}

func faultTexts(p neighbours.Plan) []string {
	out := []string{}
	for _, f := range p.Faults {
		out = append(out, f.Error())
	}
	return out
}

func planJSON(p neighbours.Plan) any {
	type table struct {
		Name  string   `json:"name"`
		Kind  string   `json:"kind"`
		Parts int      `json:"partitions"`
		Rows  *int64   `json:"rows"` // null = not known
		Bytes int64    `json:"bytes"`
		Paths []string `json:"paths"`
	}
	type neighbour struct {
		Schema string `json:"schema"`
		Rule   string `json:"rule"`
	}
	out := struct {
		Source     string              `json:"source"`
		Tables     []table             `json:"tables"`
		Neighbours []neighbour         `json:"neighbours"`
		Relation   neighbours.Relation `json:"relation"`
		Method     neighbours.Method   `json:"method"`
		Bytes      int64               `json:"copies_bytes"`
		Seconds    float64             `json:"estimated_seconds"`
		Notes      []string            `json:"notes"`
		Faults     []string            `json:"faults"`
	}{p.Source, []table{}, []neighbour{}, p.Relation, p.Method, p.Bytes, p.Seconds, append([]string{}, p.Notes...), faultTexts(p)}
	for _, t := range p.Tables {
		out.Tables = append(out.Tables, table{t.String(), t.Kind, t.Parts, t.Rows, t.Bytes, append([]string{}, t.Paths...)})
	}
	for _, n := range p.Neighbours {
		out.Neighbours = append(out.Neighbours, neighbour(n))
	}
	return out
}

func printPlan(w io.Writer, p neighbours.Plan) error {
	var text strings.Builder
	if len(p.Tables) > 0 {
		table := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
		fmt.Fprintf(table, "from database %s\trows, about\tsize\trows belong to units by\n", p.Source)
		for _, t := range p.Tables {
			kind := t.Kind
			if t.Parts > 0 {
				kind += fmt.Sprintf(" with %d parts", t.Parts)
			}
			rows := "unknown"
			if t.Rows != nil {
				rows = strconv.FormatInt(*t.Rows, 10)
			}
			fmt.Fprintf(table, "%s (%s)\t%s\t%s\t%s\n", t.String(), kind, rows, megabytes(t.Bytes), strings.Join(t.Paths, "; "))
		}
		if err := table.Flush(); err != nil {
			return err
		}
		for _, n := range p.Neighbours {
			fmt.Fprintf(&text, "%s: a unit by the rule %s\n", n.Schema, n.Rule)
		}
		fmt.Fprintf(&text, "relation %s, method %s: %s of copies, in about %s\n", p.Relation, p.Method, megabytes(p.Bytes), (time.Duration(p.Seconds*10) * time.Second / 10).String())
	}
	for _, n := range p.Notes {
		fmt.Fprintln(&text, "note: "+n)
	}
	for _, f := range faultTexts(p) {
		fmt.Fprintln(&text, "fault: "+f)
	}
	_, err := io.WriteString(w, text.String())
	return err
}

func megabytes(n int64) string { return config.ByteSize(n).String() }
