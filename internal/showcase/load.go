package showcase

import (
	"context"
	_ "embed"
	"fmt"

	"github.com/jackc/pgx/v5"
)

//go:embed sql/tables.sql
var tablesSQL string

//go:embed sql/indexes.sql
var indexesSQL string

// Load creates the tables users and transactions in the schema, which it creates if it does not exist, and fills them.
// Existing tables are an error and are not changed. The columns have the same order in every schema. Load then vacuums and
// analyses the tables, so that plans in two schemas differ only because of their data. The connection must not be in a
// transaction.
func Load(ctx context.Context, conn *pgx.Conn, schema string, d Data) error {
	if err := fill(ctx, conn, schema, d); err != nil {
		return fmt.Errorf("load schema %s: %w", schema, err)
	}
	for _, table := range []string{"users", "transactions"} {
		if _, err := conn.Exec(ctx, "vacuum (analyze) "+pgx.Identifier{schema, table}.Sanitize()); err != nil {
			return fmt.Errorf("load schema %s: %w", schema, err)
		}
	}
	return nil
}

func fill(ctx context.Context, conn *pgx.Conn, schema string, d Data) error {
	return pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		quoted := pgx.Identifier{schema}.Sanitize()
		// VACUUM marks rows as all-visible only if their commit record has been flushed to the log.
		head := "set local synchronous_commit to on; create schema if not exists " + quoted + "; set local search_path to " + quoted + ";\n"
		if _, err := tx.Exec(ctx, head+tablesSQL); err != nil {
			return err
		}
		users := pgx.CopyFromSlice(len(d.Users), func(i int) ([]any, error) {
			u := d.Users[i]
			return []any{u.ID, u.Income, u.IncomeClass}, nil
		})
		if _, err := tx.CopyFrom(ctx, pgx.Identifier{schema, "users"}, []string{"id", "income", "income_class"}, users); err != nil {
			return err
		}
		transactions := pgx.CopyFromSlice(len(d.Transactions), func(i int) ([]any, error) {
			t := d.Transactions[i]
			return []any{t.ID, t.UserID, t.StoreID, t.OtherID, t.Spent}, nil
		})
		columns := []string{"id", "user_id", "store_id", "other_id", "spent"}
		if _, err := tx.CopyFrom(ctx, pgx.Identifier{schema, "transactions"}, columns, transactions); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, indexesSQL)
		return err
	})
}
