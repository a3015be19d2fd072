package replay

import (
	"context"
	"time"
)

// ForceHoisting hoists wherever it is possible, whether it is faster or not.
func ForceHoisting() *Hoisting {
	h := NewHoisting(nil)
	h.always = true
	return h
}

// TimedHoisting tells the time by a clock of the test's.
func TimedHoisting(now func() time.Time) *Hoisting {
	h := NewHoisting(nil)
	h.now = now
	return h
}

// Compare compares two samples of equal size as an audit's first look does, and says in what they differ, or "".
func Compare(unmodified, hoisted []Round) string {
	p := proof{first: len(unmodified)}
	p.add(unmodified, false)
	p.add(hoisted, true)
	what, _ := p.look()
	return what
}

// Rehearse makes the tables of a query as an audit does before it is hoisted, and returns why not, or "".
func Rehearse(ctx context.Context, p *Player, worlds []string) string {
	run, err := p.Start(Statement{Worlds: worlds, Hoist: ForceHoisting()}, 1)
	if err != nil {
		return err.Error()
	}
	if _, err := p.takeApart(ctx, run, nil); err != nil {
		return err.Error()
	}
	return ""
}

// HoistSpace returns the bytes that hoisted tables hold.
func HoistSpace(p *Player) int64 { return p.space.held() }

// Parts returns how a query is taken apart: the statements that make its tables, and what is left of it on each world; or why not.
func Parts(ctx context.Context, p *Player, worlds []string) (tables, rests []string, reason string) {
	run, err := p.Start(Statement{Worlds: worlds, Hoist: ForceHoisting()}, 1)
	if err != nil {
		return nil, nil, err.Error()
	}
	h, err := p.takeApart(ctx, run, nil)
	if err != nil {
		return nil, nil, err.Error()
	}
	return h.statements(), h.rests, ""
}

// statements make the tables of a query.
func (h *hoisted) statements() []string {
	var tables []string
	for _, piece := range h.pieces {
		tables = append(tables, "CREATE TEMPORARY TABLE "+piece.Name+" AS "+piece.Query+"; ANALYZE pg_temp."+piece.Name)
	}
	return tables
}

// MakeTwice makes the tables of a query in two sessions, and returns why they cannot be relied on, or why there are none, or "".
// It calls between, if it is not nil, before the second session, with what Parts returns.
func MakeTwice(ctx context.Context, p *Player, worlds []string, between func(tables, rests []string)) string {
	run, err := p.Start(Statement{Worlds: worlds, Hoist: ForceHoisting()}, 1)
	if err != nil {
		return err.Error()
	}
	h, err := p.takeApart(ctx, run, nil)
	if err != nil {
		return err.Error()
	}
	if between != nil {
		between(h.statements(), h.rests)
	}
	conn, err := p.connectLimited(ctx, run.stmt)
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
