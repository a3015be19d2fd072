package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/dpwatch/dpwatch/internal/app/setup"
	"github.com/dpwatch/dpwatch/internal/app/stages"
	"github.com/dpwatch/dpwatch/internal/terminal"
	"github.com/dpwatch/dpwatch/replay/neighbours"
)

func neighboursCommand(env environment) *cobra.Command {
	group := &cobra.Command{
		Use: "neighbours", Short: "Create, verify and drop the shadow copies D0 and D1", Args: cobra.NoArgs,
		Long: `Copy the protected tables from neighbours.source into the shadow database: D0, neighbours D1 that differ from it by one
privacy unit each, and the twin (shadow.twin), a second copy of D0 with which each violation is controlled,
and the guard (shadow.guard), a third one with which control audits are. The source is only read, in one snapshot.

Exit codes: 0 done, 1 error, 2 (verify) a pair is not neighbouring.`,
	}
	group.AddCommand(
		createCommand(env),
		supervised(env, verifyCommand(env), othersData), listCommand(env), dropCommand(env),
	)
	return group
}

// withOptions adds --config and runs f with the options of the file.
func withOptions(env environment, cmd *cobra.Command, f func(context.Context, neighbours.Options) error) {
	path, engine := configFlag(cmd), ""
	engineFlag(cmd, &engine)
	cmd.Args = cobra.NoArgs
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		c, err := setup.LoadEngine(env, *path, engine)
		if err != nil {
			return err
		}
		if !c.Neighbours.Configured() {
			return fmt.Errorf("%s: neighbours.source is not set: name the database with the protected tables", *path)
		}
		o, err := stages.NeighbourOptions(c)
		if err != nil {
			return err
		}
		return f(cmd.Context(), o)
	}
}

func createCommand(env environment) *cobra.Command {
	cmd := &cobra.Command{
		Use: "create", Short: "Create the copies, or create them again",
		Long: `Create the copies, if there are none. With --replace, create new copies beside the present ones and swap them in one transaction.

The command first checks everything that would make it fail and reports all faults: privileges, extensions, types, tables
without a path to the unit, definitions that the shadow database rejects. With --plan it stops there, changes nothing, and
prints the tables, how their rows belong to units, the rules by which units are chosen, the size of the copies and an estimate
of the time. After an interrupt the command removes what it has created; only a third signal stops that.`,
		Example: `  dpwatch neighbours create --config dpwatch.yaml --plan
  dpwatch neighbours create --config dpwatch.yaml
  dpwatch neighbours create --config dpwatch.yaml --replace`,
	}
	asJSON := outputFlag(cmd)
	replace := cmd.Flags().Bool("replace", false, "replace the present copies")
	plan := cmd.Flags().Bool("plan", false, "only check for faults and print what would be done; exit code 1 if there are faults")
	withOptions(env, cmd, func(ctx context.Context, o neighbours.Options) error {
		if *plan {
			return writePlan(ctx, env, o, *replace, asJSON())
		}
		screen := terminal.NewScreen(env.Stderr)
		defer screen.Done()
		began := time.Now()
		if env.Removes != nil {
			env.Removes()
		}
		o.Note = func(text string) { screen.Say("note: " + text) }
		o.Progress = func(p neighbours.Progress) { screen.Rows(p.Step, p.Done, p.Total, time.Since(began)) }
		build := neighbours.Create
		if *replace {
			build = neighbours.Refresh
		}
		set, err := build(ctx, o)
		if err != nil {
			return err
		}
		screen.Done()
		if asJSON() {
			return json.NewEncoder(env.Stdout).Encode(map[string]any{
				"epoch": set.Epoch, "d0": set.D0, "d1": set.D1, "twin": set.Twin, "guard": set.Guard, "relation": set.Relation, "method": set.Method, "seconds": time.Since(began).Seconds(),
			})
		}
		twin := ""
		if set.Twin != "" {
			twin = ", and the twin " + set.Twin
		}
		if set.Guard != "" {
			twin += ", and the guard " + set.Guard
		}
		_, err = fmt.Fprintf(env.Stdout, "epoch %d: %s and %s%s, by method %s, in %.1f s\n",
			set.Epoch, set.D0, strings.Join(set.D1, ", "), twin, set.Method, time.Since(began).Seconds())
		return err
	})
	return cmd
}

// writeTables writes what was looked at in each table of a pair.
func writeTables(text *strings.Builder, tables []neighbours.TableLoss) {
	for _, t := range tables {
		fmt.Fprintf(text, "  table %s: lacks %d rows, %d of them name only others; %d cells name the unit; %d columns looked at", t.Table, t.Lacks, t.Others, t.Left, t.Looked)
		if len(t.NotLooked) > 0 {
			fmt.Fprintf(text, ", not looked at: %s", strings.Join(t.NotLooked, ", "))
		}
		fmt.Fprintln(text)
	}
}

func dropCommand(env environment) *cobra.Command {
	cmd := &cobra.Command{Use: "drop", Short: "Drop the copies and everything that was created for them"}
	withOptions(env, cmd, func(ctx context.Context, o neighbours.Options) error {
		if env.Removes != nil {
			env.Removes()
		}
		o.Note = func(text string) { fmt.Fprintln(env.Stderr, "note: "+text) }
		return neighbours.Drop(ctx, o)
	})
	return cmd
}

func verifyCommand(env environment) *cobra.Command {
	cmd := &cobra.Command{
		Use: "verify", Short: "Check that every pair differs by exactly one unit, and that D0 matches the source's definitions",
		Long: `Compare D0 with every neighbour: by checksums per table, of the unit's rows and of all others, and by everything that affects
plans, results and privileges: columns, constraints, indexes, statistics, views, functions, sequences, rules, row security and
the privileges of the replay role. The twin and the guard must have the rows of D0. Also compare D0 with what create would make from the source's present definitions; if the
source cannot be reached, the output says so. The exit code is 2 if a pair is not neighbouring, the
twin has other rows, or D0 does not match.`,
	}
	asJSON := outputFlag(cmd)
	withOptions(env, cmd, func(ctx context.Context, o neighbours.Options) error {
		report, err := neighbours.Verify(ctx, o)
		if err != nil {
			return err
		}
		if err := writeVerified(env.Stdout, report, asJSON()); err != nil {
			return err
		}
		if !report.OK() {
			return &exitError{code: exitViolation}
		}
		return nil
	})
	return cmd
}

func writeVerified(w io.Writer, report neighbours.Report, asJSON bool) error {
	set, pairs := report.Set, report.Pairs
	if asJSON {
		type pair struct {
			Schema  string           `json:"schema"`
			Unit    string           `json:"unit"`
			Removed map[string]int64 `json:"removed"`
			Added   map[string]int64 `json:"added"`
			Faults  []string         `json:"faults"`
			// of relation remove
			Warnings []string               `json:"warnings"`
			Tables   []neighbours.TableLoss `json:"tables"`
		}
		type twin struct {
			Schema string   `json:"schema"`
			Faults []string `json:"faults"`
		}
		out := struct {
			Epoch       int64    `json:"epoch"`
			D0          string   `json:"d0"`
			Faults      []string `json:"faults"`
			NotCompared string   `json:"source_not_compared,omitempty"`
			Pairs       []pair   `json:"pairs"`
			Twin        *twin    `json:"twin"`  // null = none
			Guard       *twin    `json:"guard"` // null = none
		}{set.Epoch, set.D0, append([]string{}, report.Faults...), report.NotCompared, []pair{}, nil, nil}
		if t := report.Twin; t != nil {
			out.Twin = &twin{t.Schema, append([]string{}, t.Faults...)}
		}
		if t := report.Guard; t != nil {
			out.Guard = &twin{t.Schema, append([]string{}, t.Faults...)}
		}
		for _, d := range pairs {
			out.Pairs = append(out.Pairs, pair{
				d.Schema, d.Unit, d.Removed, d.Added, append([]string{}, d.Faults...), append([]string{}, d.Warnings...), append([]neighbours.TableLoss{}, d.Tables...),
			})
		}
		return json.NewEncoder(w).Encode(out)
	}
	var text strings.Builder
	switch notCompared := "NOT COMPARED with the source: " + report.NotCompared; {
	case len(report.Faults) > 0:
		fmt.Fprintf(&text, "%s: NOT as the source's definitions make it\n", set.D0)
		for _, f := range report.Faults {
			fmt.Fprintln(&text, "  "+f)
		}
		if report.NotCompared != "" {
			fmt.Fprintln(&text, "  "+notCompared)
		}
	case report.NotCompared != "":
		fmt.Fprintf(&text, "%s: %s\n", set.D0, notCompared)
	default:
		fmt.Fprintf(&text, "%s: as the source's definitions make it\n", set.D0)
	}
	for _, d := range pairs {
		var removed, added int64
		for _, n := range d.Removed {
			removed += n
		}
		for _, n := range d.Added {
			added += n
		}
		verdict := "differs from " + set.D0 + " by exactly one unit"
		switch {
		case len(d.Faults) > 0:
			verdict = "NOT a neighbour of " + set.D0
		case len(d.Warnings) > 0:
			verdict = "differs from " + set.D0 + " by one unit and perhaps more"
		case slices.ContainsFunc(d.Tables, func(t neighbours.TableLoss) bool { return len(t.NotLooked) > 0 }):
			verdict += " in the columns that were looked at"
		}
		fmt.Fprintf(&text, "%s: %s (%s; %d rows in %s, %d rows here)\n", d.Schema, verdict, d.Unit, removed, set.D0, added)
		for _, f := range d.Faults {
			fmt.Fprintln(&text, "  "+f)
		}
		for _, warning := range d.Warnings {
			fmt.Fprintln(&text, "  warning: "+warning)
		}
		writeTables(&text, d.Tables)
	}
	writeTwin(&text, report)
	_, err := io.WriteString(w, text.String())
	return err
}

// writeTwin writes what was found of the twin and the guard.
func writeTwin(w io.Writer, report neighbours.Report) {
	d0 := report.Set.D0
	if report.Twin == nil {
		fmt.Fprintf(w, "no twin of %s: `dpwatch neighbours create --replace` makes one, unless shadow.twin is none\n", d0)
	}
	for _, t := range []*neighbours.Twin{report.Twin, report.Guard} {
		switch {
		case t == nil:
		case len(t.Faults) > 0:
			fmt.Fprintf(w, "%s: NOT a twin of %s\n  %s\n", t.Schema, d0, strings.Join(t.Faults, "\n  "))
		default:
			fmt.Fprintf(w, "%s: a twin of %s, with the same rows\n", t.Schema, d0)
		}
	}
}

func listCommand(env environment) *cobra.Command {
	cmd := &cobra.Command{
		Use: "list", Short: "Show which unit each neighbour differs by, and why it was chosen",
		Long: "Units are shown by a pseudonym (a salted hash of the key) and without the values by which they were chosen; --reveal shows both.",
	}
	asJSON := outputFlag(cmd)
	reveal := cmd.Flags().Bool("reveal", false, "show the units' keys and values, which are personal data")
	withOptions(env, cmd, func(ctx context.Context, o neighbours.Options) error {
		set, members, err := neighbours.List(ctx, o)
		if err != nil {
			return err
		}
		return writeMembers(env.Stdout, set, members, asJSON(), *reveal)
	})
	return cmd
}

func writeMembers(w io.Writer, set neighbours.Set, members []neighbours.Member, asJSON, reveal bool) error {
	type member struct {
		Schema string   `json:"schema"`
		Unit   string   `json:"unit"`
		Why    string   `json:"why"`
		Key    []string `json:"key,omitempty"`
		Rows   int64    `json:"rows,omitempty"`
	}
	var out []member
	for _, m := range members {
		why, _, _ := strings.Cut(m.Why, ": ")
		line := member{Schema: m.Schema, Unit: m.Unit, Why: why}
		if reveal {
			line.Why, line.Key, line.Rows = m.Why, m.Key, m.Rows
		}
		out = append(out, line)
	}
	if asJSON {
		return json.NewEncoder(w).Encode(map[string]any{
			"epoch": set.Epoch, "d0": set.D0, "twin": set.Twin, "guard": set.Guard, "relation": set.Relation, "method": set.Method, "source": set.Source, "made": set.Made, "neighbours": out,
		})
	}
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(table, "epoch %d, made %s from %s: %s, relation %s, method %s\n", set.Epoch, set.Made.UTC().Format(time.RFC3339), set.Source, set.D0, set.Relation, set.Method)
	for _, twin := range []string{set.Twin, set.Guard} {
		if twin != "" {
			fmt.Fprintf(table, "%s\ttwin of %s\n", twin, set.D0)
		}
	}
	for _, m := range out {
		fmt.Fprintf(table, "%s\t%s\t%s", m.Schema, m.Unit, m.Why)
		if reveal {
			fmt.Fprintf(table, "\t%s\t%d rows", strings.Join(m.Key, ", "), m.Rows)
		}
		fmt.Fprintln(table)
	}
	return table.Flush()
}
