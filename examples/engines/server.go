package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/jackc/pgx/v5"

	"github.com/dpwatch/dpwatch/internal/pgtemp"
)

// serve starts a temporary server whose PL/Python finds the packages of an engine's version, and creates there the
// database example with the engine's functions and the data.
func serve(ctx context.Context, binDir, site string, e engine) (_ *pgtemp.Cluster, err error) {
	dir, err := filepath.Abs(e.dir)
	if err != nil {
		return nil, err
	}
	cluster, err := pgtemp.Start(ctx, pgtemp.Options{
		BinDir: binDir,

		// One thread for each session.
		Env: []string{"PYTHONPATH=" + dir + ":" + filepath.Dir(dir) + ":" + site, "PYTHONDONTWRITEBYTECODE=1", "OPENBLAS_NUM_THREADS=1", "OMP_NUM_THREADS=1", "POLARS_MAX_THREADS=1"},
	})
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			_ = cluster.Stop()
		}
	}()
	if err := cluster.CreateDatabase(ctx, "example"); err != nil {
		return nil, err
	}
	conn, err := pgx.Connect(ctx, cluster.DSN("example"))
	if err != nil {
		return nil, err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	for _, name := range []string{"data.sql", "adapter.sql"} {
		script, err := os.ReadFile(filepath.Join(e.dir, name))
		if err != nil {
			return nil, err
		}
		if _, err := conn.PgConn().Exec(ctx, string(script)).ReadAll(); err != nil {
			return nil, fmt.Errorf("%s: %w", filepath.Join(e.dir, name), err)
		}
	}
	return cluster, nil
}
