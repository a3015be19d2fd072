package showcase

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"

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
	ShadowDatabase = "shadow"         // the neighbours in schemas d0 and d1, and the same functions in public
	D0, D1         = "d0", "d1"       // with the heavy user, and without
	AppRole        = "app"            // the client's role
	ReplayRole     = "dpwatch_replay" // the auditor's role
)

// Options holds the passwords and the seed of the demo.
type Options struct {
	AppPassword    string // must not be empty
	ReplayPassword string // must not be empty
	Seed           uint64 // 0 = Seed
}

// Setup creates the two databases with their data, functions and roles; it takes about a second. dsn is the connection
// string of a superuser for any database of the server. Existing databases are an error and are not changed.
func Setup(ctx context.Context, dsn string, o Options) error {
	if o.AppPassword == "" || o.ReplayPassword == "" {
		return errors.New("set up the showcase: both roles need a password")
	}
	if o.Seed == 0 {
		o.Seed = Seed
	}
	admin, err := pgx.ParseConfig(dsn)
	if err != nil {
		return fmt.Errorf("set up the showcase: %w", err)
	}
	data := Generate(o.Seed)
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error {
		return inDatabase(ctx, admin, ShopDatabase, func(conn *pgx.Conn) error { return shop(ctx, conn, data, o) })
	})
	g.Go(func() error {
		return inDatabase(ctx, admin, ShadowDatabase, func(conn *pgx.Conn) error { return shadow(ctx, conn, data, o) })
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
	if _, err := conn.Exec(ctx, "create database "+pgx.Identifier{name}.Sanitize()+" template template0"); err != nil {
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

func shop(ctx context.Context, conn *pgx.Conn, d Data, o Options) error {
	if err := Load(ctx, conn, "public", d); err != nil {
		return err
	}
	if err := zoo.Install(ctx, conn, "public"); err != nil {
		return err
	}
	if _, err := conn.Exec(ctx, shopSQL); err != nil {
		return err
	}
	vars := map[string]string{"database": ShopDatabase, "app_password": o.AppPassword}
	_, err := conn.Exec(ctx, substitute(rolesShopSQL, vars))
	return err
}

func shadow(ctx context.Context, conn *pgx.Conn, d Data, o Options) error {
	for schema, data := range map[string]Data{D0: d, D1: d.Without(HeavyUser)} {
		if err := Load(ctx, conn, schema, data); err != nil {
			return err
		}
	}
	if err := zoo.Install(ctx, conn, "public"); err != nil {
		return err
	}
	if _, err := conn.Exec(ctx, shopSQL); err != nil {
		return err
	}
	vars := map[string]string{"database": ShadowDatabase, "replay_password": o.ReplayPassword}
	_, err := conn.Exec(ctx, substitute(rolesShadowSQL, vars))
	return err
}

// substitute replaces psql's variables: :'name' by a literal, :"name" by an identifier.
func substitute(script string, vars map[string]string) string {
	for name, value := range vars {
		script = strings.ReplaceAll(script, ":'"+name+"'", "'"+strings.ReplaceAll(value, "'", "''")+"'")
		script = strings.ReplaceAll(script, `:"`+name+`"`, pgx.Identifier{value}.Sanitize())
	}
	return script
}
