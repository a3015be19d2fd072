package replay

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/dpwatch/dpwatch/internal/pg/connect"
	"github.com/dpwatch/dpwatch/internal/pg/ident"
)

// ApplicationName identifies replays in pg_stat_activity and in the server's log.
const ApplicationName = "dpwatch-replay"

// Options describes the shadow database and sets the limits of replays.
type Options struct {
	DSN              string
	SearchPath       []string      // schemas of the engine's functions, for statements without a path; tables are always schema-qualified
	Public           []string      // schema.table: read in place; the privilege to read them raises no warning
	Originals        []string      // schemas of the protected tables from which the copies were made; trials must not read them
	StatementTimeout time.Duration // of a trial; dpwatch's own queries have at least a minute
	ConnectTimeout   time.Duration
	MaxRows          int   // a larger result is the outcome TooLarge
	MaxBytes         int64 // the same, in bytes of values
	// SessionTrials is the number of trials after which a session is replaced by a new one, so that state that a query
	// leaves in its session (setseed, for example) does not affect all later trials. A session is kept longer if
	// replacing it would take more than 2 % of the time. 0 means 200.
	SessionTrials int
	Connections   int  // sessions of a Run; 0 means 2
	Pace          Pace // nil = no limit
	// Engines holds connection strings of an engine beside the database; trials go through the engine, and the copies
	// are still checked through DSN. None = trials go to DSN. One = it runs the trials of all worlds. Otherwise one for
	// each world, in the order of Statement.Worlds.
	Engines []string
	// HoistBytes bounds the disk space on the server of the hoisted tables of all sessions together; one session may
	// use a quarter of it. 0 means DefaultHoistBytes.
	HoistBytes int64
	// Copies are the schemas of the worlds, D0 first, whose copies trials must read; nil = Run.Reads verifies nothing.
	Copies   []string
	Twin     string            // schema of a second copy of D0; "" = there is none
	Guard    string            // schema of a third one; "" = there is none, as without a twin
	Protocol Protocol          // of trials, except hoisted ones
	Warn     func(text string) // called once for each warning about an engine; may be nil
}

// Player runs replays on one shadow database. It is safe for concurrent use.
type Player struct {
	opt     Options
	cfg     *pgconn.Config
	engines engines // one for each world, one for all, or none

	sameCopy *strings.Replacer // gives the schemas of all copies one name

	space     space            // of hoisted tables
	verifying chan struct{}    // held by countReads; capacity 1
	counted   map[string]Reads // what countReads found, by the places of a statement
	trials    sync.RWMutex     // held for reading by each trial through an engine, for writing by countReads

	epochs   epochs
	warnings warnings
	means    means
}

// New returns a Player. It checks the options and does not connect.
func New(opt Options) (*Player, error) {
	cfg, err := pgconn.ParseConfig(opt.DSN)
	if err != nil {
		return nil, errors.New("shadow database: not a connection string: write postgres://user@host:port/database or key=value pairs")
	}
	if opt.SessionTrials <= 0 {
		opt.SessionTrials = 200
	}
	if opt.Connections <= 0 {
		opt.Connections = 2
	}
	if opt.HoistBytes <= 0 {
		opt.HoistBytes = DefaultHoistBytes
	}
	if opt.ConnectTimeout > 0 {
		cfg.ConnectTimeout = opt.ConnectTimeout
	}
	own := opt.StatementTimeout
	if own > 0 {
		own = max(own, ownQueryTime)
	}
	sandbox := map[string]string{
		"application_name":                    ApplicationName,
		"default_transaction_read_only":       "on",
		"statement_timeout":                   millis(own),
		"lock_timeout":                        millis(own),
		"idle_in_transaction_session_timeout": millis(opt.StatementTimeout + time.Minute),
	}
	for name, value := range sandbox {
		cfg.RuntimeParams[name] = value
	}
	cfg.BuildFrontend, cfg.OnNotice = opt.frontend, notice
	connect.DetectLoss(cfg)
	engines, err := newEngines(opt)
	if err != nil {
		return nil, err
	}
	p := &Player{opt: opt, cfg: cfg, engines: engines, verifying: make(chan struct{}, 1), counted: map[string]Reads{}, means: newMeans(), sameCopy: sameCopyOf(opt.schemas())}
	p.epochs.known = map[string]epoch{}
	p.warnings.send = opt.Warn
	p.space.limit = opt.HoistBytes
	return p, nil
}

// ownQueryTime is the shortest statement_timeout of dpwatch's own queries. Options.StatementTimeout is for trials, and
// may be much shorter than a catalog query takes on a busy server.
const ownQueryTime = time.Minute

func millis(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }

// connectLimited opens a session like connect, with StatementTimeout for its statements.
func (p *Player) connectLimited(ctx context.Context, s Statement) (*pgconn.PgConn, error) {
	conn, err := p.connect(ctx, s)
	if err != nil {
		return nil, err
	}
	const limit = "SELECT pg_catalog.set_config('statement_timeout', $1, false), pg_catalog.set_config('lock_timeout', $1, false)"
	if _, err := conn.ExecParams(ctx, limit, [][]byte{[]byte(millis(p.opt.StatementTimeout))}, nil, nil, nil).Close(); err != nil {
		_ = conn.Close(ctx)
		return nil, p.settingError("statement_timeout", err)
	}
	return conn, nil
}

// messageSlack is added to MaxBytes to bound one backend message. A longer message ends the session.
const messageSlack = 1 << 20

// frontend returns a reader of backend messages that limits their length: pgproto3 allocates the length in a message's
// header, up to a gigabyte, before it reads the message.
func (o Options) frontend(r io.Reader, w io.Writer) *pgproto3.Frontend {
	f := pgproto3.NewFrontend(r, w)
	f.SetMaxBodyLen(int(min(max(o.MaxBytes, 0), 1<<29)) + messageSlack)
	return f
}

// connect opens one session with the client's settings applied.
func (p *Player) connect(ctx context.Context, s Statement) (*pgconn.PgConn, error) {
	conn, err := pgconn.ConnectConfig(ctx, p.cfg)
	if err != nil {
		return nil, connectError("shadow database", p.cfg, err)
	}
	path := s.SearchPath
	if path == nil {
		path = p.opt.SearchPath
	}
	settings := map[string]string{"search_path": ident.List(path)}
	if len(s.Params) > 0 && !s.Simple && !s.Named {
		settings["plan_cache_mode"] = "force_custom_plan"
	}
	for name, value := range s.Settings {
		if !fixed(name) && !(name == "client_min_messages" && strings.HasPrefix(strings.ToLower(value), "debug")) { // notices are read, debugging is not
			settings[name] = value
		}
	}
	for name, value := range settings {
		args := [][]byte{[]byte(name), []byte(value)}
		if _, err := conn.ExecParams(ctx, "SELECT pg_catalog.set_config($1, $2, false)", args, nil, nil, nil).Close(); err != nil {
			_ = conn.Close(ctx)
			return nil, p.settingError(name, err)
		}
	}
	return conn, nil
}

// fixed reports whether a setting of the client's session is not applied to a replay, because the sandbox sets it or it
// does not affect results.
func fixed(name string) bool {
	switch name {
	case "search_path", "role", "session_authorization", "application_name", "client_encoding",
		"statement_timeout", "lock_timeout", "transaction_timeout", "idle_session_timeout",
		"is_superuser", "replication", "options":
		return true
	}
	for _, prefix := range []string{"transaction_", "default_transaction_", "idle_in_transaction_", "log_", "tcp_", "ssl", "_pq_."} {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return false
}

// connectError maps an error of a connection attempt to a SetupError or a transient error. what names the server.
func connectError(what string, cfg *pgconn.Config, err error) error {
	database := cfg.Database
	if database == "" {
		database = "(the connection string has no database name; the default is the user's name)"
	}
	where := fmt.Sprintf("%s %s at %s:%d as %s", what, database, cfg.Host, cfg.Port, cfg.User)
	var pg *pgconn.PgError
	if errors.As(err, &pg) {
		switch pg.Code {
		case "28P01", "28000":
			return &SetupError{Op: where, Hint: "check the user, the password and pg_hba.conf", err: err}
		case "42501":
			return &SetupError{Op: where, Hint: fmt.Sprintf("GRANT CONNECT ON DATABASE %s TO %s", ident.Quote(cfg.Database), ident.Quote(cfg.User)), err: err}
		case "3D000":
			return &SetupError{Op: where, Hint: "the database does not exist: create it or correct the connection string", err: err}
		}
	}
	return &transientError{op: where, err: err}
}
