package preflight

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/dpwatch/dpwatch/internal/pg/connect"
)

// ApplicationName identifies the checks in pg_stat_activity.
const ApplicationName = "dpwatch-check"

// queryTimeout bounds all queries to one database together.
const queryTimeout = 30 * time.Second

// session is a connection to one database, for the checks of one configuration key.
type session struct {
	report
	conn      *pgx.Conn
	rolePaths string // the search_path settings of roles and databases in the engine's catalog, if configured
}

// report collects the results of the checks of a connection, whose key in the configuration is key.
type report struct {
	key    string
	cfg    *pgx.ConnConfig
	checks []Check
}

// Connect only checks that a connection string works.
func Connect(key, dsn string, timeout time.Duration) Task {
	return func(ctx context.Context) []Check {
		ctx, cancel := context.WithTimeout(ctx, queryTimeout)
		defer cancel()
		s := open(ctx, key, dsn, timeout)
		s.close()
		return s.checks
	}
}

// open connects, and reports whether that worked. s.conn is nil if it did not.
func open(ctx context.Context, key, dsn string, timeout time.Duration) *session {
	s := &session{report: report{key: key}}
	cfg, err := connect.Parse(dsn, connect.Options{Application: ApplicationName, Timeout: timeout, ReadOnly: true})
	if err != nil {
		s.add(key, "", Fault, "not a connection string", "write postgres://user@host:port/database or key=value pairs")
		return s
	}
	s.cfg = cfg
	where := connect.Where(cfg)
	if cfg.Database == "" {
		s.add(key, where, Warning, "names no database: the server takes the one that is named like the user", "add the database to the connection string")
	}
	if s.conn, err = pgx.ConnectConfig(ctx, cfg); err != nil {
		message, fix := s.explain(err)
		s.add(key, where, Fault, message, fix)
		return s
	}
	s.add(key, where, OK, "connects", "")
	// Signatures and names are then printed with their schemas, whatever the path of the role and of the one who runs
	// the statements is.
	if _, err := s.conn.Exec(ctx, "SELECT pg_catalog.set_config('search_path', '', false)"); err != nil {
		s.failed(key, err)
	}
	return s
}

// explain returns why a connection failed, without the connection string.
func (r *report) explain(err error) (message, fix string) {
	var e *pgconn.PgError
	if !errors.As(err, &e) {
		lines := strings.Split(strings.TrimSpace(err.Error()), "\n") // one line for each address tried
		message = "does not answer: " + strings.TrimSpace(lines[len(lines)-1])
	} else {
		message = fmt.Sprintf("%s (SQLSTATE %s)", e.Message, e.Code)
	}
	return message, connect.Remedy(&r.cfg.Config, err)
}

// message returns the message of an error, without the details of one of the server.
func message(err error) string {
	var e *pgconn.PgError
	if errors.As(err, &e) {
		return fmt.Sprintf("%s (SQLSTATE %s)", e.Message, e.Code)
	}
	return err.Error()
}

func (s *session) close() {
	if s.conn != nil {
		_ = s.conn.Close(context.Background())
	}
}

func (r *report) add(name, object string, status Status, message, fix string) {
	c := Check{Name: name, Object: object, Status: status, Message: message, Fix: fix}
	if strings.HasPrefix(fix, "GRANT ") {
		c.Database = r.cfg.Database
	}
	r.checks = append(r.checks, c)
}

// failed reports that a query failed.
func (r *report) failed(name string, err error) {
	r.add(name, r.key, Unchecked, message(err), connect.Remedy(&r.cfg.Config, err))
}
