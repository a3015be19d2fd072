package replay

import (
	"context"
	"time"
)

// ForceHoisting hoists whenever possible, even if it is not faster.
func ForceHoisting() *Hoisting {
	h := NewHoisting(nil)
	h.always = true
	return h
}

// TimedHoisting takes the times of single rounds from a function of the test.
func TimedHoisting(of func(hoisted bool) time.Duration) *Hoisting {
	h := NewHoisting(nil)
	h.took = func(hoisted bool, rounds int, _ time.Duration) time.Duration {
		return time.Duration(rounds) * of(hoisted)
	}
	return h
}

// Rehearse creates the tables of a query like an audit before hoisting, and returns the reason against it, or "".
func Rehearse(ctx context.Context, p *Player, worlds []string) string {
	run, err := p.Start(Statement{Worlds: worlds, Hoist: ForceHoisting()}, 1)
	if err != nil {
		return err.Error()
	}
	if _, err := p.splitQuery(ctx, run, nil); err != nil {
		return err.Error()
	}
	return ""
}

// HoistSpace returns the bytes that hoisted tables hold.
func HoistSpace(p *Player) int64 {
	p.space.mu.Lock()
	defer p.space.mu.Unlock()
	return p.space.used
}

// Parts returns how a query is split: the statements that create its tables, and the rest of it on each world; or the
// reason against it.
func Parts(ctx context.Context, p *Player, worlds []string) (tables, rests []string, reason string) {
	run, err := p.Start(Statement{Worlds: worlds, Hoist: ForceHoisting()}, 1)
	if err != nil {
		return nil, nil, err.Error()
	}
	h, err := p.splitQuery(ctx, run, nil)
	if err != nil {
		return nil, nil, err.Error()
	}
	return h.statements(), h.rests, ""
}

// statements returns the statements that create the tables of a query.
func (h *hoisted) statements() []string {
	var tables []string
	for _, piece := range h.pieces {
		tables = append(tables, "CREATE TEMPORARY TABLE "+piece.Name+" AS "+piece.Query+"; ANALYZE pg_temp."+piece.Name)
	}
	return tables
}

// MakeTwice creates the tables of a query in two sessions, and returns the reason why they are not deterministic or
// cannot be created, or "". If between is not nil it is called before the second session, with the results of Parts.
func MakeTwice(ctx context.Context, p *Player, worlds []string, between func(tables, rests []string)) string {
	run, err := p.Start(Statement{Worlds: worlds, Hoist: ForceHoisting()}, 1)
	if err != nil {
		return err.Error()
	}
	h, err := p.splitQuery(ctx, run, nil)
	if err != nil {
		return err.Error()
	}
	if between != nil {
		between(h.statements(), h.rests)
	}
	conn, err := p.connectLimited(ctx, run.exec.stmt)
	if err != nil {
		return err.Error()
	}
	defer conn.Close(ctx) //nolint:errcheck // nothing to be done about it
	release, err := h.make(ctx, conn)
	if err != nil {
		return err.Error()
	}
	release()
	return ""
}

// LeftOutOf returns whom a query leaves out, without trials.
func LeftOutOf(ctx context.Context, p *Player, worlds []string) ([]LeftOut, error) {
	run, err := p.Start(Statement{Worlds: worlds}, 1)
	if err != nil {
		return nil, err
	}
	defer run.Close()
	return run.leftOut(ctx)
}
