package neighbours

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

// parts measures a layout that dpwatch does not offer, created manually: the rows of each chosen unit are in a table of
// their own, all others in one, and the table of every world inherits from its parts. It needs the disk space of one
// copy.
func (b *bench) parts(ctx context.Context) error {
	conn, err := pgx.Connect(ctx, b.shadow)
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx)) //nolint:errcheck // the database goes with the cluster
	source, err := pgx.Connect(ctx, b.source)
	if err != nil {
		return err
	}
	defer source.Close(context.WithoutCancel(ctx)) //nolint:errcheck // only read
	before, err := databaseSize(ctx, conn)
	if err != nil {
		return err
	}
	began := time.Now()
	if err := b.makeParts(ctx, source, conn); err != nil {
		return fmt.Errorf("parts: %w", err)
	}
	made := time.Since(began)
	after, err := databaseSize(ctx, conn)
	if err != nil {
		return err
	}
	return worlds(ctx, conn, fmt.Sprintf("| inherited parts | %.0f | - | %.2f |", made.Seconds(), float64(after-before)/1e9))
}

func (b *bench) makeParts(ctx context.Context, source, conn *pgx.Conn) error {
	columns := map[string]string{
		"users": "id int NOT NULL, region int NOT NULL, income double precision",
		"tx":    "id bigint NOT NULL, user_id int, store int NOT NULL, spent double precision, at timestamptz NOT NULL",
	}
	indexes := map[string][]string{"users": {"ADD PRIMARY KEY (id)"}, "tx": {"ADD PRIMARY KEY (id)"}}
	worlds := []string{"d0"}
	for i := range b.k {
		worlds = append(worlds, fmt.Sprintf("d1_%d", i+1))
	}
	statements := []string{"CREATE SCHEMA part"}
	for _, w := range worlds {
		statements = append(statements, "CREATE SCHEMA "+w)
		for table := range columns {
			statements = append(statements, fmt.Sprintf("CREATE TABLE %s.%s (%s)", w, table, columns[table]))
		}
	}
	for _, sql := range statements {
		if _, err := conn.Exec(ctx, sql); err != nil {
			return err
		}
	}
	key := map[string]string{"users": "id", "tx": "user_id"}
	for part := range b.k + 1 { // 0 = all others; the units are users 1 to k
		for table := range columns {
			condition := fmt.Sprintf("%s = %d", key[table], part)
			if part == 0 {
				condition = fmt.Sprintf("%s > %d", key[table], b.k)
			}
			name := fmt.Sprintf("part.%s_%d", table, part)
			if _, err := conn.Exec(ctx, fmt.Sprintf("CREATE TABLE %s (%s)", name, columns[table])); err != nil {
				return err
			}
			if err := transfer(ctx, source, conn, fmt.Sprintf("SELECT * FROM %s WHERE %s", table, condition), name); err != nil {
				return err
			}
			after := []string{"ALTER TABLE " + name + " " + strings.Join(indexes[table], ", ")}
			if table == "tx" {
				after = append(after, "CREATE INDEX ON "+name+" (user_id)", "CREATE INDEX ON "+name+" (store, at)")
			}
			for i, w := range worlds {
				if part == 0 || i != part {
					after = append(after, fmt.Sprintf("ALTER TABLE %s INHERIT %s.%s", name, w, table))
				}
			}
			for _, sql := range append(after, "VACUUM ANALYZE "+name) {
				if _, err := conn.Exec(ctx, sql); err != nil {
					return fmt.Errorf("%s: %w", sql, err)
				}
			}
		}
	}
	for _, w := range worlds {
		for table := range columns {
			if _, err := conn.Exec(ctx, fmt.Sprintf("ANALYZE %s.%s", w, table)); err != nil {
				return err
			}
		}
	}
	return nil
}
