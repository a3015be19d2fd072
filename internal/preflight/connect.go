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
	"github.com/dpwatch/dpwatch/internal/pg/ident"
)

// ApplicationName identifies the checks in pg_stat_activity.
const ApplicationName = "dpwatch-check"

// queryTimeout bounds all queries to one database together.
const queryTimeout = 30 * time.Second

// session is a connection to one database, for the checks of one configuration key.
type session struct {
	conn   *pgx.Conn
	key    string
	cfg    *pgx.ConnConfig
	checks []Check

	rolePaths string // the search_path settings of roles and databases in the engine's catalog, if configured
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
	s := &session{key: key}
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
	return s
}

// explain returns why a connection failed, without the connection string.
func (s *session) explain(err error) (message, fix string) {
	var e *pgconn.PgError
	if !errors.As(err, &e) {
		lines := strings.Split(strings.TrimSpace(err.Error()), "\n") // one line for each address tried
		return "does not answer: " + strings.TrimSpace(lines[len(lines)-1]), "start the server, or correct the host, the port and sslmode"
	}
	message = fmt.Sprintf("%s (SQLSTATE %s)", e.Message, e.Code)
	switch e.Code {
	case "28P01":
		fix = "correct the user or the password"
	case "28000":
		fix = "give the role LOGIN and a line in pg_hba.conf, or correct the user"
	case "3D000":
		fix = "create the database, or correct its name"
	case "42501":
		fix = fmt.Sprintf("GRANT CONNECT ON DATABASE %s TO %s", ident.Quote(s.cfg.Database), ident.Quote(s.cfg.User))
	case "53300":
		fix = "raise max_connections or the role's CONNECTION LIMIT"
	}
	return message, fix
}

func (s *session) close() {
	if s.conn != nil {
		_ = s.conn.Close(context.Background())
	}
}

func (s *session) add(name, object string, status Status, message, fix string) {
	s.checks = append(s.checks, Check{Name: name, Object: object, Status: status, Message: message, Fix: fix})
}

// failed reports that a query failed.
func (s *session) failed(name string, err error) {
	var e *pgconn.PgError
	text := err.Error()
	if errors.As(err, &e) {
		text = fmt.Sprintf("%s (SQLSTATE %s)", e.Message, e.Code)
	}
	s.add(name, s.key, Unchecked, text, "")
}
