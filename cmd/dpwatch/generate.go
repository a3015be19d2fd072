package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/dpwatch/dpwatch/internal/generate"
	"github.com/dpwatch/dpwatch/internal/generate/store"
	"github.com/dpwatch/dpwatch/internal/pg/connect"
	"github.com/dpwatch/dpwatch/internal/showcase"
)

func generateCommand(env environment) *cobra.Command {
	cmd := &cobra.Command{
		Use: "generate", Short: "Make a data set for tests from a specification", Args: cobra.NoArgs,
		Long: `Make a data set from a YAML specification of tables and columns, or the data of the demo (--preset shop), as CSV files or in a database.

The same specification and seed give the same data. Files and tables that exist are not replaced.

The kinds of columns: key (start), reference (table; exponent, heavy: {key, rows}), integer (min, max), float (min, max), normal (mean, sd), zipf (exponent, max),
text (values; weights), date (from, to). Every kind but key takes nulls, a share; numbers take outliers: {share, value}; float and normal take decimals.`,
		Example: `  dpwatch generate --preset shop --output data
  dpwatch generate --spec data.yaml --seed 7 --dsn postgres://postgres@127.0.0.1:5432/test --schema public`,
	}
	spec := cmd.Flags().String("spec", "", "the specification, a YAML file")
	preset := cmd.Flags().String("preset", "", "a data set of dpwatch: shop, the data of the demo")
	seed := cmd.Flags().Uint64("seed", showcase.Seed, "the seed of the random values")
	output := cmd.Flags().String("output", "", "the directory for one CSV file for each table")
	dsn := cmd.Flags().String("dsn", "", "the database in which the tables are created")
	schema := cmd.Flags().String("schema", "public", "the schema of the tables, with --dsn; created if it is absent")
	cmd.MarkFlagsMutuallyExclusive("spec", "preset")
	cmd.MarkFlagsOneRequired("spec", "preset")
	cmd.MarkFlagsMutuallyExclusive("output", "dsn")
	cmd.MarkFlagsOneRequired("output", "dsn")
	cmd.MarkFlagsMutuallyExclusive("output", "schema")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		tables, err := tablesToGenerate(*spec, *preset, *seed)
		if err != nil {
			return err
		}
		if *output != "" {
			paths, err := store.Files(cmd.Context(), *output, tables)
			for _, path := range paths {
				fmt.Fprintln(env.Stdout, path)
			}
			return err
		}
		return generateInto(cmd.Context(), env, *dsn, *schema, tables)
	}
	return cmd
}

func tablesToGenerate(path, preset string, seed uint64) ([]generate.Table, error) {
	switch preset {
	case "":
	case "shop":
		return showcase.Generate(seed).Tables(), nil
	default:
		return nil, fmt.Errorf("--preset %s: the only preset is shop", preset)
	}
	data, err := os.ReadFile(path) // #nosec G304 -- the user names the file
	if err != nil {
		return nil, fmt.Errorf("read specification: %w", err)
	}
	spec, err := generate.Parse(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return spec.Generate(seed), nil
}

func generateInto(ctx context.Context, env environment, dsn, schema string, tables []generate.Table) error {
	conn, err := connect.Open(ctx, dsn, connect.Options{Application: "dpwatch generate"})
	if errors.Is(err, connect.ErrSyntax) {
		return fmt.Errorf("--dsn %w", err)
	}
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	defer conn.Close(context.WithoutCancel(ctx))
	rows, err := store.Database(ctx, conn, schema, tables)
	if err != nil {
		return err
	}
	for i, t := range tables {
		fmt.Fprintf(env.Stdout, "%s.%s: %d rows\n", schema, t.Name, rows[i])
	}
	return nil
}
