package replay

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// ApplicationName is how replays show in pg_stat_activity and in the server's log.
const ApplicationName = "dpwatch-replay"

// Options says where the copies are and how gently they are asked.
type Options struct {
	DSN              string
	SearchPath       []string // where the engine's functions are; tables are always schema-qualified
	StatementTimeout time.Duration
	ConnectTimeout   time.Duration
	MaxRows          int   // a larger result is the outcome TooLarge
	MaxBytes         int64 // the same, in bytes of values
	// SessionTrials is how many trials a session runs before it is replaced by a fresh one, so that what a
	// query leaves behind in its session (setseed, say) does not reach every later trial. 0 means 200.
	SessionTrials int
}

// Player opens replays on one shadow database. It is safe for use by several goroutines.
type Player struct {
	opt Options
	cfg *pgconn.Config
}

// New checks the options; it does not connect.
func New(opt Options) (*Player, error) {
	cfg, err := pgconn.ParseConfig(opt.DSN)
	if err != nil {
		return nil, errors.New("shadow database: not a connection string: write postgres://user@host:port/database or key=value pairs")
	}
	if opt.SessionTrials <= 0 {
		opt.SessionTrials = 200
	}
	if opt.ConnectTimeout > 0 {
		cfg.ConnectTimeout = opt.ConnectTimeout
	}
	millis := func(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }
	sandbox := map[string]string{
		"application_name":                    ApplicationName,
		"default_transaction_read_only":       "on",
		"statement_timeout":                   millis(opt.StatementTimeout),
		"lock_timeout":                        millis(opt.StatementTimeout),
		"idle_in_transaction_session_timeout": millis(opt.StatementTimeout + time.Minute),
	}
	for name, value := range sandbox {
		cfg.RuntimeParams[name] = value
	}
	return &Player{opt: opt, cfg: cfg}, nil
}

// connect opens one session with the client's settings applied.
func (p *Player) connect(ctx context.Context, s Statement) (*pgconn.PgConn, error) {
	conn, err := pgconn.ConnectConfig(ctx, p.cfg)
	if err != nil {
		return nil, p.connectError(err)
	}
	settings := map[string]string{"search_path": searchPath(s.SearchPath, p.opt.SearchPath)}
	for name, value := range s.Settings {
		if !pinned(name) {
			settings[name] = value
		}
	}
	for name, value := range settings {
		args := [][]byte{[]byte(name), []byte(value)}
		if _, err := conn.ExecParams(ctx, "SELECT pg_catalog.set_config($1, $2, false)", args, nil, nil, nil).Close(); err != nil {
			_ = conn.Close(ctx)
			return nil, settingError(name, err)
		}
	}
	return conn, nil
}

// searchPath joins two paths as a setting's value; a schema counts where it comes first.
func searchPath(first, second []string) string {
	var quoted []string
	seen := map[string]bool{}
	for _, name := range slices.Concat(first, second) {
		if !seen[name] {
			seen[name] = true
			quoted = append(quoted, pgx.Identifier{name}.Sanitize())
		}
	}
	return strings.Join(quoted, ", ")
}

// pinned reports whether a session setting of the client is not carried into a replay: it belongs to the
// sandbox, or says nothing about results.
func pinned(name string) bool {
	switch name {
	case "search_path", "role", "session_authorization", "application_name", "client_encoding",
		"statement_timeout", "lock_timeout", "transaction_timeout", "idle_session_timeout",
		"client_min_messages", "is_superuser", "replication", "options":
		return true
	}
	for _, prefix := range []string{"transaction_", "default_transaction_", "idle_in_transaction_", "log_", "tcp_", "ssl", "_pq_."} {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return false
}

func (p *Player) connectError(err error) error {
	where := fmt.Sprintf("shadow database %s at %s:%d as %s", p.cfg.Database, p.cfg.Host, p.cfg.Port, p.cfg.User)
	var pg *pgconn.PgError
	if errors.As(err, &pg) {
		switch pg.Code {
		case "28P01", "28000":
			return &SetupError{Op: where, Hint: "check the user, the password and pg_hba.conf", err: err}
		case "3D000":
			return &SetupError{Op: where, Hint: "the database does not exist: create it or correct the connection string", err: err}
		}
	}
	return &transientError{op: where, err: err}
}
