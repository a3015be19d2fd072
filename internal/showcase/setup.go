package showcase

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"

	"github.com/dpwatch/dpwatch/internal/pg/ident"
	"github.com/dpwatch/dpwatch/internal/zoo"
)

//go:embed sql/shop.sql
var shopSQL string

//go:embed sql/roles_shop.sql
var rolesShopSQL string

//go:embed sql/roles_shadow.sql
var rolesShadowSQL string

// Names in the demo.
const (
	ShopDatabase   = "shop"           // production: the data, and the DP functions in schema public
	ShadowDatabase = "shadow"         // for the neighbours, and the same functions in public
	D0, D1         = "d0", "d1"       // the neighbours' schemas there: with the heavy user, and without
	AppRole        = "app"            // the client's role
	ReplayRole     = "dpwatch_replay" // the auditor's role
)

// Options holds the passwords of the demo, or what the server is to store for them.
type Options struct {
	AppPassword    string // must not be empty
	ReplayPassword string // must not be empty
}

// Setup creates the two databases with functions and roles, and fills the first one. The second one has no copies of its
// tables yet: package neighbours makes them. dsn is the connection string of a superuser for any database of the server.
// Existing databases are an error and are not changed.
func Setup(ctx context.Context, dsn string, o Options) error {
	if o.AppPassword == "" || o.ReplayPassword == "" {
		return errors.New("set up the showcase: both roles need a password")
	}
	admin, err := pgx.ParseConfig(dsn)
	if err != nil {
		return fmt.Errorf("set up the showcase: %w", err)
	}
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error {
		vars := map[string]string{"database": ShopDatabase, "app_password": o.AppPassword}
		return inDatabase(ctx, admin, ShopDatabase, func(conn *pgx.Conn) error {
			if err := Load(ctx, conn, "public", Generate(Seed)); err != nil {
				return err
			}
			return fillDatabase(ctx, conn, substitute(rolesShopSQL, vars))
		})
	})
	g.Go(func() error {
		vars := map[string]string{"database": ShadowDatabase, "replay_password": o.ReplayPassword}
		return inDatabase(ctx, admin, ShadowDatabase, func(conn *pgx.Conn) error {
			return fillDatabase(ctx, conn, substitute(rolesShadowSQL, vars))
		})
	})
	if err := g.Wait(); err != nil {
		return fmt.Errorf("set up the showcase: %w", err)
	}
	return nil
}

// inDatabase creates the database and calls f with a connection to it.
func inDatabase(ctx context.Context, admin *pgx.ConnConfig, name string, f func(*pgx.Conn) error) error {
	conn, err := pgx.ConnectConfig(ctx, admin)
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	if _, err := conn.Exec(ctx, "create database "+ident.Quote(name)+" template template0"); err != nil {
		return err
	}
	config := admin.Copy()
	config.Database = name
	inside, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return err
	}
	defer inside.Close(context.WithoutCancel(ctx))
	if err := f(inside); err != nil {
		return fmt.Errorf("database %s: %w", name, err)
	}
	return nil
}

// fillDatabase installs the DP functions and the tables that are not protected, and creates the roles.
func fillDatabase(ctx context.Context, conn *pgx.Conn, roles string) error {
	if err := zoo.Install(ctx, conn, "public"); err != nil {
		return err
	}
	for _, script := range []string{shopSQL, roles} {
		if _, err := conn.Exec(ctx, script); err != nil {
			return err
		}
	}
	return nil
}

// substitute replaces psql's variables: :'name' by a literal, :"name" by an identifier.
func substitute(script string, vars map[string]string) string {
	for name, value := range vars {
		script = strings.ReplaceAll(script, ":'"+name+"'", ident.Literal(value))
		script = strings.ReplaceAll(script, `:"`+name+`"`, ident.Quote(value))
	}
	return script
}

//go:embed sql/tables.sql
var tablesSQL string

//go:embed sql/indexes.sql
var indexesSQL string

// Load creates the tables users and transactions in the schema, which it creates if it does not exist, and fills them.
// Existing tables are an error and are not changed. The columns have the same order in every schema. Load then vacuums
// and analyses the tables, so that plans in two schemas differ only because of their data. The connection must not be
// in a transaction.
func Load(ctx context.Context, conn *pgx.Conn, schema string, d Data) error {
	if err := fill(ctx, conn, schema, d); err != nil {
		return fmt.Errorf("load schema %s: %w", schema, err)
	}
	for _, table := range []string{"users", "transactions"} {
		if _, err := conn.Exec(ctx, "vacuum (analyze) "+ident.Quote(schema, table)); err != nil {
			return fmt.Errorf("load schema %s: %w", schema, err)
		}
	}
	return nil
}

func fill(ctx context.Context, conn *pgx.Conn, schema string, d Data) error {
	return pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		quoted := ident.Quote(schema)
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
