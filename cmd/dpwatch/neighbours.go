package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/dpwatch/dpwatch/internal/app"
	"github.com/dpwatch/dpwatch/internal/terminal"
	"github.com/dpwatch/dpwatch/replay/neighbours"
)

func neighboursCommand(env environment) *cobra.Command {
	group := &cobra.Command{
		Use: "neighbours", Short: "Make, check and remove the shadow copies D0 and D1", Args: cobra.NoArgs,
		Long: `Copy the protected tables from neighbours.source into the shadow database: D0, and neighbours D1 that differ from it by one
privacy unit each. The source is only read, in one snapshot. Exit codes: 0 done, 1 fault, 2 (verify) a pair is not neighbouring.`,
	}
	group.AddCommand(
		buildCommand(env, "create", "Make the copies, where there are none", neighbours.Create),
		buildCommand(env, "refresh", "Make new copies beside the present ones and swap them in one transaction", neighbours.Refresh),
		verifyCommand(env), listCommand(env), dropCommand(env),
	)
	return group
}

// withOptions adds --config and runs f with the options of the file.
func withOptions(env environment, cmd *cobra.Command, f func(context.Context, neighbours.Options) error) {
	path := configFlag(cmd)
	cmd.Args = cobra.NoArgs
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		c, _, err := app.Load(env, *path)
		if err != nil {
			return err
		}
		if !c.Neighbours.Configured() {
			return fmt.Errorf("%s: neighbours.source is not set: name the database with the protected tables", *path)
		}
		o, err := app.NeighbourOptions(c)
		if err != nil {
			return err
		}
		return f(cmd.Context(), o)
	}
}

func buildCommand(env environment, use, short string, build func(context.Context, neighbours.Options) (neighbours.Set, error)) *cobra.Command {
	cmd := &cobra.Command{
		Use: use, Short: short,
		Long: short + `.

The command first checks, and reports at once, everything that would make it fail: rights, extensions, types, tables without a
path to the unit, definitions that the shadow database does not take. --plan stops there: it prints the tables, how their rows
belong to units, by which rules units are chosen, the size of the copies and an estimate of the time, and changes nothing.
A second signal does not stop the command from removing what it made; a third one does.`,
		Example: "  dpwatch neighbours " + use + " --config dpwatch.yaml --plan\n  dpwatch neighbours " + use + " --config dpwatch.yaml",
	}
	asJSON := outputFlag(cmd)
	plan := cmd.Flags().Bool("plan", false, "only look for faults and print what would be done; exit code 1 with faults")
	withOptions(env, cmd, func(ctx context.Context, o neighbours.Options) error {
		js, err := asJSON()
		if err != nil {
			return err
		}
		if *plan {
			return writePlan(ctx, env, o, use == "refresh", js)
		}
		screen := terminal.NewScreen(env.Stderr)
		defer screen.Done()
		began := time.Now()
		if env.Removes != nil {
			env.Removes()
		}
		o.Note = func(text string) { screen.Say("note: " + text) }
		o.Progress = func(p neighbours.Progress) { screen.Rows(p.Step, p.Done, p.Total, time.Since(began)) }
		set, err := build(ctx, o)
		if err != nil {
			return err
		}
		screen.Done()
		if js {
			return json.NewEncoder(env.Stdout).Encode(map[string]any{
				"epoch": set.Epoch, "d0": set.D0, "d1": set.D1, "relation": set.Relation, "method": set.Method, "seconds": time.Since(began).Seconds(),
			})
		}
		_, err = fmt.Fprintf(env.Stdout, "epoch %d: %s and %s, by method %s, in %.1f s\n",
			set.Epoch, set.D0, strings.Join(set.D1, ", "), set.Method, time.Since(began).Seconds())
		return err
	})
	return cmd
}

func dropCommand(env environment) *cobra.Command {
	cmd := &cobra.Command{Use: "drop", Short: "Remove the copies and everything that was made for them"}
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
		Use: "verify", Short: "Check that every pair differs by exactly one unit, and that D0 is what the source's definitions make",
		Long: `Compare D0 and every neighbour, by checksums per table of the unit's rows and of all others, and by what plans, results and
rights depend on: columns, constraints, indexes, statistics, views, functions, sequences, rules, row security and what the replay role may read.
Compare D0 with what create would make of the source's definitions today; if the source cannot be reached, the output says so.
Exit code 2 if a pair is not neighbouring, or D0 is not as it should be.`,
	}
	asJSON := outputFlag(cmd)
	withOptions(env, cmd, func(ctx context.Context, o neighbours.Options) error {
		js, err := asJSON()
		if err != nil {
			return err
		}
		report, err := neighbours.Verify(ctx, o)
		if err != nil {
			return err
		}
		if err := writeVerified(env.Stdout, report, js); err != nil {
			return err
		}
		if !report.OK() {
			return &exitError{code: exitViolation}
		}
		return nil
	})
	return cmd
}

func writeVerified(w io.Writer, report neighbours.Report, js bool) error {
	set, pairs := report.Set, report.Pairs
	if js {
		type pair struct {
			Schema  string           `json:"schema"`
			Unit    string           `json:"unit"`
			Removed map[string]int64 `json:"removed"`
			Added   map[string]int64 `json:"added"`
			Faults  []string         `json:"faults"`
		}
		out := struct {
			Epoch       int64    `json:"epoch"`
			D0          string   `json:"d0"`
			Faults      []string `json:"faults"`
			NotCompared string   `json:"source_not_compared,omitempty"`
			Pairs       []pair   `json:"pairs"`
		}{set.Epoch, set.D0, append([]string{}, report.Faults...), report.NotCompared, []pair{}}
		for _, d := range pairs {
			out.Pairs = append(out.Pairs, pair{d.Schema, d.Unit, d.Removed, d.Added, append([]string{}, d.Faults...)})
		}
		return json.NewEncoder(w).Encode(out)
	}
	text := set.D0 + ": as the source's definitions make it"
	switch {
	case len(report.Faults) > 0:
		text = set.D0 + ": NOT as the source's definitions make it"
	case report.NotCompared != "":
		text = set.D0 + ": NOT COMPARED with the source: " + report.NotCompared
	}
	if _, err := fmt.Fprintln(w, text); err != nil {
		return err
	}
	for _, f := range report.Faults {
		if _, err := fmt.Fprintln(w, "  "+f); err != nil {
			return err
		}
	}
	if len(report.Faults) > 0 && report.NotCompared != "" {
		if _, err := fmt.Fprintln(w, "  NOT COMPARED with the source: "+report.NotCompared); err != nil {
			return err
		}
	}
	for _, d := range pairs {
		var removed, added int64
		for _, n := range d.Removed {
			removed += n
		}
		for _, n := range d.Added {
			added += n
		}
		text := "differs from " + set.D0 + " by exactly one unit"
		if len(d.Faults) > 0 {
			text = "NOT a neighbour of " + set.D0
		}
		if _, err := fmt.Fprintf(w, "%s: %s (%s; %d rows in %s, %d rows here)\n", d.Schema, text, d.Unit, removed, set.D0, added); err != nil {
			return err
		}
		for _, f := range d.Faults {
			if _, err := fmt.Fprintln(w, "  "+f); err != nil {
				return err
			}
		}
	}
	return nil
}

func listCommand(env environment) *cobra.Command {
	cmd := &cobra.Command{
		Use: "list", Short: "Show which unit each neighbour differs by, and why it was chosen",
		Long: "Units are shown by a pseudonym, a salted hash of the key, and without the values that they were chosen for; --reveal shows both.",
	}
	asJSON := outputFlag(cmd)
	reveal := cmd.Flags().Bool("reveal", false, "show the units' keys and values, which are personal data")
	withOptions(env, cmd, func(ctx context.Context, o neighbours.Options) error {
		js, err := asJSON()
		if err != nil {
			return err
		}
		set, members, err := neighbours.List(ctx, o)
		if err != nil {
			return err
		}
		return writeMembers(env.Stdout, set, members, js, *reveal)
	})
	return cmd
}

func writeMembers(w io.Writer, set neighbours.Set, members []neighbours.Member, js, reveal bool) error {
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
	if js {
		return json.NewEncoder(w).Encode(map[string]any{
			"epoch": set.Epoch, "d0": set.D0, "relation": set.Relation, "method": set.Method, "source": set.Source, "made": set.Made, "neighbours": out,
		})
	}
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(table, "epoch %d, made %s from %s: %s, relation %s, method %s\n", set.Epoch, set.Made.UTC().Format(time.RFC3339), set.Source, set.D0, set.Relation, set.Method)
	for _, m := range out {
		fmt.Fprintf(table, "%s\t%s\t%s", m.Schema, m.Unit, m.Why)
		if reveal {
			fmt.Fprintf(table, "\t%s\t%d rows", strings.Join(m.Key, ", "), m.Rows)
		}
		fmt.Fprintln(table)
	}
	return table.Flush()
}
