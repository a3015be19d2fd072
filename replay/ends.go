package replay

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/dpwatch/dpwatch/internal/outcome"
)

// This file finds out whether a statement ends its session: a function that crashes its backend or terminates it. The
// loss of a session alone says nothing, since operators, restarts and networks end sessions, too. So the trial runs
// again, alone, beside an idle session of the same server: only if that survives, twice, the statement ended its own.
// Where the whole server crashed, it tells all sessions so except the one whose backend crashed; then nothing runs
// again.

// EndsError reports that trials of a statement end their session, or the server. Another run would do it again.
type EndsError struct{ outcome.Ends }

func (e *EndsError) Error() string { return e.Text() }

// Lost reports whether an error is the loss of a session during a trial, which may succeed when it is repeated.
func Lost(err error) bool {
	var t *transientError
	return errors.As(err, &t) && t.lost
}

// SQLSTATEs of ended sessions.
const (
	crashShutdown      = "57P02" // another backend crashed
	cannotConnect      = "57P03"
	idleSession        = "57P05"
	idleInTransaction  = "25P03"
	transactionTimeout = "25P04"
)

// loses reports whether an error of a statement means that its session was lost. A session that the server ends after a
// time limit, or with all others, is not lost by a statement.
func loses(err error) bool {
	var pg *pgconn.PgError
	var connecting *pgconn.ConnectError
	var network *net.OpError
	switch {
	case errors.As(err, &pg):
		switch pg.Code {
		case crashShutdown, cannotConnect, idleSession, idleInTransaction, transactionTimeout:
			return false
		}
		return pg.SeverityUnlocalized == "FATAL" || pg.SeverityUnlocalized == "PANIC" || pg.Severity == "FATAL"
	case errors.As(err, &connecting), errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded):
		return false
	}
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.As(err, &network) // an answer that cannot be read is none of these
}

// lastWordKey is where a connection keeps the SQLSTATE with which the server announced the end of all sessions.
const lastWordKey = "dpwatch.last_word"

// hearLastWord keeps the SQLSTATE of the announcement that the server ends all sessions because a backend crashed, or
// because of an immediate shutdown. No function can make it: the server names the routine that does.
func hearLastWord(conn *pgconn.PgConn, n *pgconn.Notice) {
	if n.Routine == "quickdie" {
		conn.CustomData()[lastWordKey] = n.Code
	}
}

// lastWord returns the SQLSTATE with which the server announced the end of a connection, or "".
func lastWord(conn *pgconn.PgConn) string {
	code, _ := conn.CustomData()[lastWordKey].(string)
	return code
}

// bystander is an idle session beside those of a Run, and what these have lost. Its Run and the Runs of parts of the
// query share it.
type bystander struct {
	conn *pgconn.PgConn // nil = none

	mu   sync.Mutex // guards lost
	lost []loss
}

// loss is a session that ended during a trial.
type loss struct {
	world     int  // unknownWorld = the statement that ended it was of several
	announced bool // by the server, to all sessions
}

const unknownWorld = -1

// noteOf notes the loss of a connection if an error is one.
func (b *bystander) noteOf(conn *pgconn.PgConn, world int, err error) {
	if Lost(err) {
		b.note(loss{world, lastWord(conn) != ""})
	}
}

// note notes that the session of a trial ended.
func (b *bystander) note(l loss) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.lost = append(b.lost, l)
}

// take returns the losses since the last call.
func (b *bystander) take() []loss {
	b.mu.Lock()
	defer b.mu.Unlock()
	lost := b.lost
	b.lost = nil
	return lost
}

// open opens the session unless it is open. Without one, the crash of a server is not told from its restart.
func (b *bystander) open(ctx context.Context, cfg *pgconn.Config) error {
	if b.conn != nil && !b.conn.IsClosed() {
		return nil
	}
	conn, err := pgconn.ConnectConfig(ctx, cfg)
	if err != nil {
		return err
	}
	b.conn = conn
	const stay = "SELECT pg_catalog.set_config(name, '0', false) FROM pg_catalog.pg_settings WHERE name = 'idle_session_timeout'"
	_, _ = conn.Exec(ctx, stay).ReadAll() // it may not exist
	return nil
}

func (b *bystander) close() {
	if b.conn == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	_ = b.conn.Close(ctx)
	b.conn = nil
}

// fate is what became of a server, or of a session.
type fate int

const (
	survives fate = iota
	ends          // of its own accord: the bystander survives
	crashed       // the whole server
	unclear       // everything else
)

// How long the bystander is watched after a loss: a server ends the other sessions some time after a crash. It is also
// the pause before the trial is repeated, so that one action of an operator does not meet both.
const (
	watchTime  = time.Second
	answerTime = 10 * time.Second
)

// fate returns what became of the server of the bystander after the loss of another session.
func (b *bystander) fate(ctx context.Context) fate {
	if b.conn == nil {
		return unclear
	}
	watched, cancel := context.WithTimeout(ctx, watchTime)
	defer cancel()
	for watched.Err() == nil && !b.conn.IsClosed() {
		_ = b.conn.WaitForNotification(watched)
	}
	answered, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	if !b.conn.IsClosed() {
		_, err := b.conn.Exec(answered, "SELECT 1").ReadAll()
		var pg *pgconn.PgError
		if err == nil || errors.As(err, &pg) && !b.conn.IsClosed() { // an engine may refuse the statement
			return survives
		}
	}
	if lastWord(b.conn) == crashShutdown {
		return crashed
	}
	return unclear
}

// accompany opens the bystander of trials in the database. They run without it if it cannot be opened.
func (r *Run) accompany(ctx context.Context) {
	if len(r.exec.player.engines) == 0 {
		_ = r.exec.by.open(ctx, r.exec.player.cfg)
	}
}

// examine returns the error of trials. If a session was lost, it finds out whether the statement ends its session: the
// error is then an EndsError.
func (r *Run) examine(ctx context.Context, err error) error {
	lost := r.exec.by.take()
	if err == nil || ctx.Err() != nil || !Lost(err) {
		return err
	}
	worlds, own := worldsOf(lost)
	e := &examination{run: r, counts: make([]outcome.CopyEnds, len(r.exec.stmt.Worlds))}
	if had := len(r.exec.player.engines) == 0 && r.exec.by.conn != nil; had {
		switch r.exec.by.fate(ctx) {
		case survives:
			for _, world := range worlds {
				e.counts[world].Trials, e.counts[world].Ended = 1, 1
			}
		case crashed:
			if !own { // by another client
				return err
			}
			if len(worlds) == 1 {
				e.counts[worlds[0]].Trials, e.counts[worlds[0]].Ended = 1, 1
			}
			return e.result(true)
		default:
			return err
		}
	}
	if len(worlds) == 0 {
		worlds = r.coin.Perm(len(e.counts))
	}
	if found := e.repeat(ctx, worlds); found != nil {
		return found
	}
	return err
}

// worldsOf returns the worlds whose trials lost a session without an announcement of the server, as far as they are
// known. own reports whether there is any such loss.
func worldsOf(lost []loss) (worlds []int, own bool) {
	for _, l := range lost {
		if own = own || !l.announced; !l.announced && l.world != unknownWorld && !slices.Contains(worlds, l.world) {
			worlds = append(worlds, l.world)
		}
	}
	return worlds, own
}

// examination runs trials of a statement that may end its session, alone.
type examination struct {
	run    *Run
	counts []outcome.CopyEnds // by world
}

// repeat repeats the trials of worlds until those of one have ended their sessions outcome.MostEnds times, and then
// runs trials of another world. nil = they keep their sessions, or nothing is known.
func (e *examination) repeat(ctx context.Context, worlds []int) error {
	for _, world := range worlds {
		for e.counts[world].Ended < outcome.MostEnds {
			switch e.trial(ctx, world) {
			case ends:
				continue
			case crashed:
				return e.result(true)
			case unclear:
				return nil
			}
			break
		}
		if e.counts[world].Ended < outcome.MostEnds {
			continue
		}
		other := 0 // D0, or the first neighbour
		if world == 0 {
			other = 1
		}
		for e.counts[other].Trials < outcome.FewestKept && e.counts[other].Ended == 0 {
			switch e.trial(ctx, other) {
			case crashed:
				return e.result(true)
			case unclear:
				return e.result(false)
			}
		}
		return e.result(false)
	}
	return nil
}

// trial runs one trial of a world.
func (e *examination) trial(ctx context.Context, world int) fate {
	became, err := e.run.alone(ctx, world)
	if err != nil {
		return unclear
	}
	e.counts[world].Trials++
	if became != survives {
		e.counts[world].Ended++
	}
	return became
}

// result returns what was found.
func (e *examination) result(down bool) error {
	found := &EndsError{outcome.Ends{Down: down}}
	for world, c := range e.counts {
		if c.Trials == 0 {
			continue
		}
		c.Place = e.run.exec.stmt.place(world)
		c.Schema = e.run.exec.player.copyName(c.Place)
		if c.Ended > 0 {
			found.Copies = slices.Insert(found.Copies, 0, c)
		} else {
			found.Copies = append(found.Copies, c)
		}
	}
	return found
}

// copyName returns the schema of the copies at a place, or the name of the world.
func (p *Player) copyName(place int) string {
	if schemas := p.opt.schemas(); place < len(schemas) {
		return schemas[place]
	}
	return worldName(place, false)
}

// alone runs one trial of a world in a session of its own, beside a bystander. An error is neither.
func (r *Run) alone(ctx context.Context, world int) (fate, error) {
	x := r.exec
	x.by = &bystander{}
	defer x.by.close()
	cfg := x.player.cfg
	if engines := x.player.engines; len(engines) > 0 {
		cfg = engines[min(x.stmt.place(world), len(engines)-1)]
	}
	if err := x.by.open(ctx, cfg); err != nil {
		return unclear, err
	}
	pace := x.player.opt.Pace
	if pace != nil {
		if _, err := pace.Enter(ctx, 1, x.player.means.least(x.player.means.key("separate\x00"+x.stmt.Text(0)))); err != nil {
			return unclear, err
		}
	}
	if x.stmt.Hoist = nil; x.stmt.Separate == nil {
		x.stmt.Separate = &Separation{}
	}
	var o outcome.Outcome
	_, err := x.inOwnSession(ctx, &separate{trial: trial{world: world, into: &o}})
	if pace != nil {
		pace.Leave()
	}
	switch {
	case err == nil:
		return survives, nil
	case !Lost(err):
		return unclear, err
	}
	_, own := worldsOf(x.by.take())
	switch became := x.by.fate(ctx); {
	case became == survives:
		return ends, nil
	case became == crashed && own:
		return crashed, nil
	}
	return unclear, err
}
