package replay

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"golang.org/x/sync/errgroup"

	"github.com/dpwatch/dpwatch/internal/outcome"
)

// session is one connection with the client's settings and, if plans may be reused, the prepared statement of every
// world.
type session struct {
	conn     *pgconn.PgConn
	engines  []*pgconn.PgConn               // of the engines beside the database, conn among them; none = trials go to the database
	prepared []*pgconn.StatementDescription // by world; nil if every trial is parsed and planned again
	reader   reader
	used     int           // trials that have run
	share    int           // trials that share a Sync, if allowed
	cost     time.Duration // time to open it
	busy     time.Duration // time of its trials
	release  func()        // called by close; nil = nothing
}

// renewShare bounds the cost of new sessions: a session runs trials for at least renewShare times as long as opening it
// took.
const renewShare = 50

// worn reports whether a session must be replaced: it has run Options.SessionTrials trials, and they have taken
// renewShare times as long as opening the session.
func (s *session) worn(trials int) bool {
	return s.used >= trials && s.busy >= renewShare*s.cost
}

func (s *session) close() {
	if s == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	if s.conn != nil {
		_ = s.conn.Close(ctx)
	}
	for _, conn := range s.engines {
		_ = conn.Close(ctx) // may be closed already; harmless
	}
	if s.release != nil {
		s.release() // may have been called already; harmless
	}
}

// open replaces sessions that are missing, closed or worn.
func (r *Run) open(ctx context.Context) error {
	var missing []int
	for i, s := range r.sessions {
		if s != nil && !s.conn.IsClosed() && !s.worn(r.exec.player.opt.SessionTrials) {
			continue
		}
		s.close()
		r.sessions[i] = nil
		missing = append(missing, i)
	}
	if len(missing) > 0 && r.exec.planning.get() == unknownPlanning { // the first session decides for all
		s, err := r.exec.session(ctx)
		if err != nil {
			return err
		}
		r.sessions[missing[0]] = s
		missing = missing[1:]
	}
	group, gctx := errgroup.WithContext(ctx)
	for _, i := range missing {
		group.Go(func() error {
			return guarded(func() (err error) { r.sessions[i], err = r.exec.session(gctx); return err })
		})
	}
	if err := group.Wait(); err != nil {
		r.end()
		return err
	}
	return nil
}

// end closes the sessions that run trials.
func (r *Run) end() {
	if r.hoist != nil {
		r.hoist.close()
	}
	for i, s := range r.sessions {
		s.close()
		r.sessions[i] = nil
	}
}

// session opens one session and prepares its statements.
func (x *executor) session(ctx context.Context) (*session, error) {
	if len(x.player.engines) > 0 {
		return x.engineSession(ctx)
	}
	s, began := &session{share: syncTrials}, time.Now()
	var err error
	if s.conn, err = x.player.connectLimited(ctx, x.stmt); err != nil {
		return nil, err
	}
	connected := time.Now()
	if x.stmt.setup != nil {
		if s.release, err = x.stmt.setup(ctx, s.conn); err != nil {
			x.by.noteOf(s.conn, unknownWorld, err)
			s.close()
			return nil, err
		}
	}
	setup := time.Since(connected)
	plan := x.planning.get()
	if plan == unknownPlanning {
		if plan, err = x.checkPlanning(ctx, s.conn); err != nil {
			s.close()
			return nil, err
		}
		x.planning.set(plan)
		began = time.Now().Add(-setup) // the check of planning is for the whole run
	}
	if plan == steadyPlanning {
		for i, sql := range x.stmt.Worlds {
			description, err := s.conn.Prepare(ctx, "dpwatch"+strconv.Itoa(i), sql, x.oids)
			if err != nil {
				s.close()
				if _, err := x.classify(s.conn, i, err); err != nil {
					return nil, err
				}
				// A statement that fails in only one world is an outcome, trial by trial.
				x.planning.set(freshPlanning)
				return x.session(ctx)
			}
			s.prepared = append(s.prepared, description)
		}
	}
	s.cost = time.Since(began)
	return s, nil
}

// syncTrials is the number of trials that share a Sync, and so an implicit transaction, if that changes no trial's
// distribution.
const syncTrials = 64

// pipeline sends trials on one session. A Sync follows each: one implicit transaction per trial, and an error ends only
// its own. If Statement.together is set, several trials share a Sync. After an error the server skips everything up to
// the Sync; skipped trials are sent again, so that every trial is executed once, whatever the outcome of the others.
func (x *executor) pipeline(ctx context.Context, s *session, trials []trial) error {
	if len(s.engines) > 0 {
		return x.runThroughEngines(ctx, s, trials)
	}
	if s.conn.IsClosed() { // by the trial before
		if err := x.reopen(ctx, s); err != nil {
			return err
		}
	}
	if x.simple {
		return x.runSimple(ctx, s, trials)
	}
	s.used += len(trials)
	share := 1
	if x.stmt.together {
		share = s.share
	}
	for len(trials) > 0 {
		skipped, err := x.pipelined(ctx, s, trials, share)
		if err != nil {
			return err
		}
		if len(skipped) > 0 { // when errors are frequent, sharing costs more than it saves
			s.share = max(1, s.share/2)
		}
		trials = skipped
		if len(trials) > 0 && s.conn.IsClosed() {
			if err := x.reopen(ctx, s); err != nil {
				return err
			}
		}
	}
	return nil
}

// reopen replaces a session that was closed because of a row too large to be read.
func (x *executor) reopen(ctx context.Context, s *session) error {
	s.close()
	fresh, err := x.session(ctx)
	if err != nil {
		return err
	}
	fresh.busy += s.busy
	*s = *fresh
	return nil
}

// pipelined sends trials once, share of them before each Sync, and returns those that the server skipped.
func (x *executor) pipelined(ctx context.Context, s *session, trials []trial, share int) (skipped []trial, err error) {
	forgetNotices(s.conn)
	pipeline := s.conn.StartPipeline(ctx)
	for i, t := range trials {
		if s.prepared != nil {
			pipeline.SendQueryStatement(s.prepared[t.world], x.values, x.format, nil)
		} else {
			pipeline.SendQueryParams(x.stmt.Worlds[t.world], x.values, x.oids, x.format, nil)
		}
		if (i+1)%share == 0 || i == len(trials)-1 {
			pipeline.SendPipelineSync()
		}
	}
	if err := pipeline.Flush(); err != nil {
		return nil, &transientError{op: "replay", err: err, lost: loses(err)}
	}
	for len(trials) > 0 {
		together := trials[:min(share, len(trials))]
		trials = trials[len(together):]
		for i, t := range together {
			refused := false
			if *t.into, refused, err = x.result(pipeline, s, alone(together)); err != nil {
				return nil, err
			}
			x.player.said(t.into, s.conn)
			if refused {
				skipped = append(skipped, together[i+1:]...)
				break
			}
		}
		if s.conn.IsClosed() { // by a row too large to be read
			return append(skipped, trials...), nil
		}
		sync, err := pipeline.GetResults()
		if err != nil { // when the transaction ends
			fault := &transientError{op: "replay", err: err, lost: loses(err)}
			x.by.noteOf(s.conn, alone(together), fault)
			return nil, fault
		}
		if _, ok := sync.(*pgconn.PipelineSync); !ok {
			return nil, fmt.Errorf("replay: unexpected %T from the server", sync)
		}
	}
	if err := pipeline.Close(); err != nil {
		return nil, &transientError{op: "replay", err: err}
	}
	return skipped, nil
}

// alone returns the world of the trials that share a Sync if it is known of which of them an error is.
func alone(together []trial) int {
	if len(together) > 1 { // the server may not have sent the results of those before
		return unknownWorld
	}
	return together[0].world
}

// result reads the outcome of one trial. refused reports that the server answered with an error.
func (x *executor) result(pipeline *pgconn.Pipeline, s *session, world int) (o outcome.Outcome, refused bool, err error) {
	result, err := pipeline.GetResults()
	if err == nil {
		rows, ok := result.(*pgconn.ResultReader)
		if !ok {
			return o, false, fmt.Errorf("replay: unexpected %T from the server", result)
		}
		if o, err = s.reader.read(rows, x.player.opt.MaxRows, x.player.opt.MaxBytes); err == nil {
			return o, false, nil
		}
	}
	o, err = x.failure(s.conn, world, err)
	return o, true, err
}
