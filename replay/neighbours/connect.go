package neighbours

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// connect opens a session; what names the configuration's key in faults, which never quote the connection string.
func connect(ctx context.Context, dsn, what string) (*pgx.Conn, error) {
	cfg, err := pgx.ParseConfig(dsn)
	if err != nil {
		return nil, fmt.Errorf("%s is not a connection string: write postgres://user@host:port/database or key=value pairs", what)
	}
	cfg.RuntimeParams["application_name"] = applicationName
	if cfg.ConnectTimeout == 0 {
		cfg.ConnectTimeout = 10 * time.Second
	}
	cfg.DefaultQueryExecMode = pgx.QueryExecModeExec // statements differ every time: preparing them helps nobody
	conn, err := pgx.ConnectConfig(ctx, cfg)
	if err != nil {
		return nil, fmt.Errorf("connect to %s (database %s at %s:%d as %s): %w", what, cfg.Database, cfg.Host, cfg.Port, cfg.User, err)
	}
	return conn, nil
}

// explain adds what to do to the server errors that users meet. It does not quote rows: the detail of an error may.
func explain(err error) error {
	var e *pgconn.PgError
	if !errors.As(err, &e) {
		return err
	}
	hint := ""
	switch {
	case e.Code == "42501":
		hint = "give the role the right: at the source SELECT on the protected tables and their sequences, in the shadow database CREATE on the database, and on the schemas that there are already in which types are to be made"
	case e.Code == "53100" || e.Code == "53200" || e.Code == "58030":
		hint = "the server has no room for the copies: free some, ask for fewer neighbours, or set neighbours.method to view"
	case e.Code == "42P01" && strings.Contains(e.Message, "relation"):
		hint = "a table went away meanwhile, or a definition names one that is not copied"
	case e.Code == "42704" || e.Code == "3F000" || e.Code == "42883":
		hint = "the shadow database needs the source's extensions and the functions that definitions call, under the same names: create them there first"
	case e.Code == "55P03" || e.Code == "40P01":
		hint = "another session holds a lock: run the command again"
	case strings.HasPrefix(e.Code, "57P"):
		hint = "the server ended the session: run the command again"
	}
	if hint == "" {
		return err
	}
	return fmt.Errorf("%w; %s", err, hint)
}
