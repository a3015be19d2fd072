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

// parseEngines parses Options.Engines. The only startup parameters that an engine gets are application_name and those
// of its own connection string: an engine refuses the session if it does not support a parameter.
func (p *Player) parseEngines() error {
	for i, dsn := range p.opt.Engines {
		cfg, err := pgconn.ParseConfig(dsn)
		if err != nil {
			return fmt.Errorf("engine %d: not a connection string: write postgres://user@host:port/database or key=value pairs", i)
		}
		if p.opt.ConnectTimeout > 0 {
			cfg.ConnectTimeout = p.opt.ConnectTimeout
		}
		cfg.RuntimeParams["application_name"] = ApplicationName
		cfg.BuildFrontend = p.opt.frontend
		connect.DetectLoss(cfg)
		p.engines = append(p.engines, cfg)
	}
	return nil
}

// checkStatement returns an error if a statement cannot be replayed with the configured engines and protocol.
func (p *Player) checkStatement(s Statement) error {
	switch n := len(p.engines); {
	case n > 1 && n != len(s.Worlds):
		return fmt.Errorf("replay: %d engines for %d worlds: give one for all, or one for each", n, len(s.Worlds))
	case p.simple(s) && len(s.Params) > 0:
		return &SetupError{Op: "replay", Hint: "the query has parameters, and a simple query has none: set shadow.engine.protocol to captured or extended"}
	}
	return nil
}

// connectEngine opens a session of one engine. It returns the names, sorted, of the settings that the engine rejects;
// an engine need not support PostgreSQL's settings.
func (p *Player) connectEngine(ctx context.Context, i int, s Statement) (conn *pgconn.PgConn, refused []string, err error) {
	cfg := p.engines[i]
	if conn, err = pgconn.ConnectConfig(ctx, cfg); err != nil {
		return nil, nil, connectError("engine", cfg, err)
	}
	settings := map[string]string{
		"default_transaction_read_only": "'on'",
		"statement_timeout":             strconv.FormatInt(p.opt.StatementTimeout.Milliseconds(), 10),
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

// rejectedSettings returns the warning for settings that an engine rejects.
func (p *Player) rejectedSettings(i int, refused []string) string {
	return fmt.Sprintf("the engine at %s:%d refuses the settings %s: trials run without them; its source should be read-only, with a statement_timeout of its own",
		p.engines[i].Host, p.engines[i].Port, strings.Join(refused, ", "))
}

// maxWarned bounds Player.warned, which is cleared when it is full.
const maxWarned = 1000

// warn passes a warning to Options.Warn, each text once unless Player.warned was cleared meanwhile.
func (p *Player) warn(warning string) {
	if p.opt.Warn == nil {
		return
	}
	p.mu.Lock()
	known := p.warned[warning]
	if len(p.warned) >= maxWarned { // clients choose the names of settings
		clear(p.warned)
	}
	p.warned[warning] = true
	p.mu.Unlock()
	if !known {
		p.opt.Warn(warning)
	}
}

// CheckEngine opens a session of one engine, by its index in Options.Engines. A warning names something that works but
// should be fixed.
func (p *Player) CheckEngine(ctx context.Context, i int) (warning string, err error) {
	conn, refused, err := p.connectEngine(ctx, i, Statement{})
	if err != nil {
		return "", err
	}
	_ = conn.Close(ctx)
	if len(refused) > 0 {
		warning = p.rejectedSettings(i, refused)
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
			p.warn(warning)
		}
	}
	return nil
}

// engineSession opens one session of each engine.
func (r *Run) engineSession(ctx context.Context) (*session, error) {
	s, began := &session{}, time.Now()
	for i := range r.player.engines {
		conn, err := r.openEngine(ctx, i)
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
func (r *Run) openEngine(ctx context.Context, i int) (*pgconn.PgConn, error) {
	conn, refused, err := r.player.connectEngine(ctx, i, r.stmt)
	if err == nil && len(refused) > 0 {
		r.player.warn(r.player.rejectedSettings(i, refused))
	}
	return conn, err
}

// runThroughEngines runs trials one after the other: an engine may not support pipelined statements.
func (r *Run) runThroughEngines(ctx context.Context, s *session, trials []trial) error {
	s.used += len(trials)
	for _, t := range trials {
		i := min(t.world, len(s.engines)-1) // one engine for all worlds, or one for each
		if s.engines[i].IsClosed() {        // after a timeout, or by an engine that closes sessions after an error
			conn, err := r.openEngine(ctx, i)
			if err != nil {
				return err
			}
			s.engines[i] = conn
			s.conn = s.engines[0]
		}
		var err error
		if *t.into, err = r.besideCounting(ctx, s, s.engines[i], r.stmt.Worlds[t.world]); err != nil {
			return err
		}
	}
	return nil
}

// besideCounting runs one trial, and not while countReads counts what others read.
func (r *Run) besideCounting(ctx context.Context, s *session, conn *pgconn.PgConn, sql string) (outcome.Outcome, error) {
	r.player.trials.RLock()
	defer r.player.trials.RUnlock()
	return r.engineTrial(ctx, s, conn, sql)
}

// engineTrial runs one trial. An error that the engine reports is an outcome, and so is a timeout.
func (r *Run) engineTrial(ctx context.Context, s *session, conn *pgconn.PgConn, sql string) (outcome.Outcome, error) {
	limited, cancel := ctx, context.CancelFunc(func() {})
	if limit := r.player.opt.StatementTimeout; limit > 0 {
		limited, cancel = context.WithTimeout(ctx, limit+engineGrace)
	}
	defer cancel()
	o, err := r.engineResult(limited, s, conn, sql)
	switch {
	case err == nil:
		return o, nil
	case ctx.Err() == nil && limited.Err() != nil:
		return outcome.Outcome{SQLState: Timeout}, nil
	}
	state, err := classify(err)
	return outcome.Outcome{SQLState: state}, err
}

func (r *Run) engineResult(ctx context.Context, s *session, conn *pgconn.PgConn, sql string) (outcome.Outcome, error) {
	opt := r.player.opt
	if !r.simple {
		return s.reader.read(conn.ExecParams(ctx, sql, r.values, r.oids, r.format, nil), opt.MaxRows, opt.MaxBytes)
	}
	results := conn.Exec(ctx, sql)
	var o outcome.Outcome
	var err error
	for results.NextResult() && err == nil {
		o, err = s.reader.read(results.ResultReader(), opt.MaxRows, opt.MaxBytes)
	}
	return o, errors.Join(err, results.Close())
}
