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

// session is one connection with the client's settings and, where plans may be kept, the statement of every world.
type session struct {
	conn     *pgconn.PgConn
	ports    []*pgconn.PgConn               // of the engines beside the database, conn among them; none = trials go to the database
	prepared []*pgconn.StatementDescription // by world; nil where every trial is parsed and planned anew
	reader   reader
	used     int           // trials
	share    int           // trials that share a Sync, where they may
	cost     time.Duration // what opening it took
	busy     time.Duration // what its trials took
	release  func()        // what close calls; nil = nothing
}

// renewShare bounds what fresh sessions cost: a session runs trials for so many times what opening it took, at least.
const renewShare = 50

// worn reports whether a session has run its share of trials: Options.SessionTrials, and more of a query that is so
// quick that opening sessions would take more than a fiftieth of the time.
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
	for _, port := range s.ports {
		_ = port.Close(ctx) // once more is no harm
	}
	if s.release != nil {
		s.release() // once more is no harm
	}
}

// open replaces the sessions that are missing, dead or worn.
func (r *Run) open(ctx context.Context) error {
	var missing []int
	for i, s := range r.sessions {
		if s != nil && !s.conn.IsClosed() && !s.worn(r.player.opt.SessionTrials) {
			continue
		}
		s.close()
		r.sessions[i] = nil
		missing = append(missing, i)
	}
	if len(missing) > 0 && r.planning == unknownPlanning { // the first one finds out for all
		s, err := r.session(ctx)
		if err != nil {
			return err
		}
		r.sessions[missing[0]] = s
		missing = missing[1:]
	}
	group, gctx := errgroup.WithContext(ctx)
	for _, i := range missing {
		group.Go(func() error {
			return guarded(func() (err error) { r.sessions[i], err = r.session(gctx); return err })
		})
	}
	if err := group.Wait(); err != nil {
		r.Close()
		return err
	}
	return nil
}

// session opens one session and prepares what is to be prepared on it.
func (r *Run) session(ctx context.Context) (*session, error) {
	if len(r.player.engines) > 0 {
		return r.engineSession(ctx)
	}
	s, began := &session{share: syncTrials}, time.Now()
	var err error
	if s.conn, err = r.player.connectLimited(ctx, r.stmt); err != nil {
		return nil, err
	}
	connected := time.Now()
	if r.stmt.setup != nil {
		if s.release, err = r.stmt.setup(ctx, s.conn); err != nil {
			s.close()
			return nil, err
		}
	}
	setup := time.Since(connected)
	if r.planning == unknownPlanning {
		if r.planning, err = r.askPlanning(ctx, s.conn); err != nil {
			s.close()
			return nil, err
		}
		began = time.Now().Add(-setup) // asking was for the whole run
	}
	if r.planning == steadyPlanning {
		for i, sql := range r.stmt.Worlds {
			description, err := s.conn.Prepare(ctx, "dpwatch"+strconv.Itoa(i), sql, r.oids)
			if err != nil {
				s.close()
				if _, fault := classify(err); fault != nil {
					return nil, fault
				}
				// A statement that is wrong in one world alone is an outcome, trial by trial.
				r.planning = freshPlanning
				return r.session(ctx)
			}
			s.prepared = append(s.prepared, description)
		}
	}
	s.cost = time.Since(began)
	return s, nil
}

// syncTrials is how many trials share a Sync, and so an implicit transaction, where that changes no trial's law.
const syncTrials = 64

// pipeline sends trials on one session. Behind each is a Sync: one implicit transaction a trial, and an error ends only its
// own. Where Statement.together allows, several trials share a Sync; the server then skips what comes after an error up to
// the Sync, and what it skipped is sent again, so that every trial is executed once, whatever came of the others.
func (r *Run) pipeline(ctx context.Context, s *session, trials []trial) error {
	if len(s.ports) > 0 {
		return r.knock(ctx, s, trials)
	}
	if s.conn.IsClosed() { // by the last trial before
		if err := r.reopen(ctx, s); err != nil {
			return err
		}
	}
	if r.simple {
		return r.simply(ctx, s, trials)
	}
	s.used += len(trials)
	share := 1
	if r.stmt.together {
		share = s.share
	}
	for len(trials) > 0 {
		skipped, err := r.pipelined(ctx, s, trials, share)
		if err != nil {
			return err
		}
		if len(skipped) > 0 { // where errors are usual, sharing costs more than it saves
			s.share = max(1, s.share/2)
		}
		trials = skipped
		if len(trials) > 0 && s.conn.IsClosed() {
			if err := r.reopen(ctx, s); err != nil {
				return err
			}
		}
	}
	return nil
}

// reopen puts a fresh session in the place of one that a row ended which was too large to be read.
func (r *Run) reopen(ctx context.Context, s *session) error {
	s.close()
	fresh, err := r.session(ctx)
	if err != nil {
		return err
	}
	fresh.busy += s.busy
	*s = *fresh
	return nil
}

// pipelined sends trials once, share of them behind each Sync, and returns those that the server skipped.
func (r *Run) pipelined(ctx context.Context, s *session, trials []trial, share int) (skipped []trial, err error) {
	pipeline := s.conn.StartPipeline(ctx)
	for i, t := range trials {
		if s.prepared != nil {
			pipeline.SendQueryStatement(s.prepared[t.world], r.values, r.format, nil)
		} else {
			pipeline.SendQueryParams(r.stmt.Worlds[t.world], r.values, r.oids, r.format, nil)
		}
		if (i+1)%share == 0 || i == len(trials)-1 {
			pipeline.SendPipelineSync()
		}
	}
	if err := pipeline.Flush(); err != nil {
		return nil, &transientError{op: "replay", err: err}
	}
	for len(trials) > 0 {
		together := trials[:min(share, len(trials))]
		trials = trials[len(together):]
		for i, t := range together {
			refused := false
			if *t.into, refused, err = r.result(pipeline, s); err != nil {
				return nil, err
			}
			if refused {
				skipped = append(skipped, together[i+1:]...)
				break
			}
		}
		if s.conn.IsClosed() { // by a row that was too large to be read
			return append(skipped, trials...), nil
		}
		sync, err := pipeline.GetResults()
		if err != nil {
			return nil, &transientError{op: "replay", err: err}
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

// result reads what came of one trial. refused: the server answered with an error.
func (r *Run) result(pipeline *pgconn.Pipeline, s *session) (o outcome.Outcome, refused bool, err error) {
	result, err := pipeline.GetResults()
	if err == nil {
		rows, ok := result.(*pgconn.ResultReader)
		if !ok {
			return o, false, fmt.Errorf("replay: unexpected %T from the server", result)
		}
		if o, err = s.reader.read(rows, r.player.opt.MaxRows, r.player.opt.MaxBytes); err == nil {
			return o, false, nil
		}
	}
	state, fault := classify(err)
	return outcome.Outcome{SQLState: state}, true, fault
}
