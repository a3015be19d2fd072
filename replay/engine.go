package replay

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/dpwatch/dpwatch/internal/outcome"
	"github.com/dpwatch/dpwatch/internal/pg/connect"
	"github.com/dpwatch/dpwatch/internal/pg/ident"
)

// engineGrace is added to Options.StatementTimeout to bound a trial through an engine. When it passes, the Player
// closes the session. An engine that supports statement_timeout cancels the statement earlier and keeps the session.
const engineGrace = time.Second

// engines are the configurations of sessions of the engines beside the database.
type engines []*pgconn.Config

// newEngines parses Options.Engines. The only startup parameters that an engine gets are application_name and those of
// its own connection string: an engine refuses the session if it does not support a parameter.
func newEngines(opt Options) (engines, error) {
	var all engines
	for i, dsn := range opt.Engines {
		cfg, err := pgconn.ParseConfig(dsn)
		if err != nil {
			return nil, fmt.Errorf("engine %d: not a connection string: write postgres://user@host:port/database or key=value pairs", i)
		}
		if opt.ConnectTimeout > 0 {
			cfg.ConnectTimeout = opt.ConnectTimeout
		}
		cfg.RuntimeParams["application_name"] = ApplicationName
		cfg.BuildFrontend, cfg.OnNotice = opt.frontend, notice
		connect.DetectLoss(cfg)
		all = append(all, cfg)
	}
	return all, nil
}

// checkStatement returns an error if a statement cannot be replayed with the configured engines and protocol.
func (p *Player) checkStatement(s Statement) error {
	switch n := len(p.engines); {
	case s.Places != nil && len(s.Places) != len(s.Worlds):
		return fmt.Errorf("replay: %d places for %d worlds", len(s.Places), len(s.Worlds))
	case n > 1 && s.Places != nil && slices.Max(s.Places) >= n, n > 1 && s.Places == nil && n != len(s.Worlds) && n != len(s.Worlds)+len(p.opt.twins()):
		return fmt.Errorf("replay: %d engines for %d worlds: give one for all, or one for each", n, len(s.Worlds))
	case p.simple(s) && len(s.Params) > 0:
		return &SetupError{Op: "replay", Hint: "the query has parameters, and a simple query has none: set shadow.engine.protocol to captured or extended"}
	}
	return nil
}

// connect opens a session of one engine. It returns the names, sorted, of the settings that the engine rejects;
// an engine need not support PostgreSQL's settings.
func (e engines) connect(ctx context.Context, i int, s Statement, timeout time.Duration) (conn *pgconn.PgConn, refused []string, err error) {
	cfg := e[i]
	if conn, err = pgconn.ConnectConfig(ctx, cfg); err != nil {
		return nil, nil, connectError("engine", cfg, err)
	}
	settings := map[string]string{
		"default_transaction_read_only": "'on'",
		"statement_timeout":             strconv.FormatInt(timeout.Milliseconds(), 10),
	}
	for name, value := range s.Settings {
		if !fixed(name) {
			settings[name] = ident.Literal(value)
		}
	}
	if len(s.SearchPath) > 0 {
		settings["search_path"] = ident.List(s.SearchPath)
	}
	for name, value := range settings {
		words := strings.Split(name, ".")
		_, err := conn.Exec(ctx, "SET "+ident.Quote(words...)+" = "+value).ReadAll()
		var pg *pgconn.PgError
		switch {
		case errors.As(err, &pg) && !conn.IsClosed():
			refused = append(refused, name)
		case err != nil:
			_ = conn.Close(ctx)
			return nil, nil, &transientError{op: fmt.Sprintf("engine at %s:%d: set %s", cfg.Host, cfg.Port, name), err: err}
		}
	}
	slices.Sort(refused)
	return conn, refused, nil
}

// rejected returns the warning for settings that an engine rejects.
func (e engines) rejected(i int, refused []string) string {
	return fmt.Sprintf("the engine at %s:%d refuses the settings %s: trials run without them; its source should be read-only, with a statement_timeout of its own",
		e[i].Host, e[i].Port, strings.Join(refused, ", "))
}

// CheckEngine opens a session of one engine, by its index in Options.Engines. A warning names something that works but
// should be fixed.
func (p *Player) CheckEngine(ctx context.Context, i int) (warning string, err error) {
	conn, refused, err := p.engines.connect(ctx, i, Statement{}, p.opt.StatementTimeout)
	if err != nil {
		return "", err
	}
	_ = conn.Close(ctx)
	if len(refused) > 0 {
		warning = p.engines.rejected(i, refused)
	}
	return warning, nil
}

// checkEngines opens a session of every engine.
func (p *Player) checkEngines(ctx context.Context) error {
	for i := range p.engines {
		warning, err := p.CheckEngine(ctx, i)
		if err != nil {
			return err
		}
		if warning != "" {
			p.warnings.warn(warning)
		}
	}
	return nil
}

// engineSession opens one session of each engine.
func (x *executor) engineSession(ctx context.Context) (*session, error) {
	s, began := &session{}, time.Now()
	for i := range x.player.engines {
		conn, err := x.openEngine(ctx, i)
		if err != nil {
			s.close()
			return nil, err
		}
		s.engines = append(s.engines, conn)
		s.conn = s.engines[0]
	}
	s.cost = time.Since(began)
	return s, nil
}

// openEngine opens a session of one engine for trials.
func (x *executor) openEngine(ctx context.Context, i int) (*pgconn.PgConn, error) {
	conn, refused, err := x.player.engines.connect(ctx, i, x.stmt, x.player.opt.StatementTimeout)
	if err == nil && len(refused) > 0 {
		x.player.warnings.warn(x.player.engines.rejected(i, refused))
	}
	return conn, err
}

// runThroughEngines runs trials one after the other: an engine may not support pipelined statements.
func (x *executor) runThroughEngines(ctx context.Context, s *session, trials []trial) error {
	s.used += len(trials)
	for _, t := range trials {
		i := min(x.stmt.place(t.world), len(s.engines)-1) // one engine for all worlds, or one for each
		if s.engines[i].IsClosed() {                      // after a timeout, or by an engine that closes sessions after an error
			conn, err := x.openEngine(ctx, i)
			if err != nil {
				return err
			}
			s.engines[i] = conn
			s.conn = s.engines[0]
		}
		var err error
		forgetNotices(s.engines[i])
		if *t.into, err = x.besideCounting(ctx, s, s.engines[i], x.stmt.Worlds[t.world]); err != nil {
			x.by.noteOf(s.engines[i], t.world, err)
			return err
		}
		x.player.said(t.into, s.engines[i])
	}
	return nil
}

// besideCounting runs one trial, and not while countReads counts what others read.
func (x *executor) besideCounting(ctx context.Context, s *session, conn *pgconn.PgConn, sql string) (outcome.Outcome, error) {
	x.player.trials.RLock()
	defer x.player.trials.RUnlock()
	return x.engineTrial(ctx, s, conn, sql)
}

// engineTrial runs one trial. An error that the engine reports is an outcome, and so is a timeout.
func (x *executor) engineTrial(ctx context.Context, s *session, conn *pgconn.PgConn, sql string) (outcome.Outcome, error) {
	limited, cancel := ctx, context.CancelFunc(func() {})
	if limit := x.player.opt.StatementTimeout; limit > 0 {
		limited, cancel = context.WithTimeout(ctx, limit+engineGrace)
	}
	defer cancel()
	o, err := x.engineResult(limited, s, conn, sql)
	switch {
	case err == nil:
		return o, nil
	case ctx.Err() == nil && limited.Err() != nil:
		return outcome.Outcome{SQLState: Timeout}, nil
	}
	return x.player.engineFailure(err)
}

func (x *executor) engineResult(ctx context.Context, s *session, conn *pgconn.PgConn, sql string) (outcome.Outcome, error) {
	opt := x.player.opt
	if !x.simple {
		return s.reader.read(conn.ExecParams(ctx, sql, x.values, x.oids, x.format, nil), opt.MaxRows, opt.MaxBytes)
	}
	results := conn.Exec(ctx, sql)
	var o outcome.Outcome
	var err error
	for results.NextResult() && err == nil {
		o, err = s.reader.read(results.ResultReader(), opt.MaxRows, opt.MaxBytes)
	}
	return o, errors.Join(err, results.Close())
}
