package replay

import (
	"context"
	"errors"

	"github.com/dpwatch/dpwatch/internal/capture"
	"github.com/dpwatch/dpwatch/internal/outcome"
)

// Step is a statement of a sequence after the first one.
type Step struct {
	Worlds []string // its text on every world, in the order of Statement.Worlds
	Params []capture.Param
	Simple bool // see Statement
	Named  bool
}

// checkSequence returns an error if the steps after a statement cannot be replayed.
func (p *Player) checkSequence(s Statement) error {
	if len(s.Then) > 0 && s.Separate == nil {
		return errors.New("replay: every trial of a sequence needs its own session: set Separate")
	}
	for i := range s.Then {
		step := s.step(i + 1)
		if len(step.Worlds) != len(s.Worlds) {
			return errors.New("replay: every statement of a sequence needs its text on every world")
		}
		if err := p.checkStatement(step); err != nil {
			return err
		}
	}
	return nil
}

// step returns the statement at the index i of the sequence, 0 first, without those after it.
func (s Statement) step(i int) Statement {
	if i > 0 {
		next := s.Then[i-1]
		s.Worlds, s.Params, s.Simple, s.Named = next.Worlds, next.Params, next.Simple, next.Named
	}
	s.Then = nil
	return s
}

// bind sets the statement and its parameters.
func (x *executor) bind(s Statement) {
	x.stmt, x.simple = s, x.player.simple(s)
	x.values, x.oids, x.format = nil, nil, nil
	for _, param := range s.Params {
		value := param.Value
		switch {
		case param.Null:
			value = nil
		case value == nil:
			value = []byte{}
		}
		x.values = append(x.values, value)
		x.oids = append(x.oids, param.OID)
		x.format = append(x.format, param.Format)
	}
}

// sequence runs the statements of a trial in a session that has run nothing else, and joins their outcomes. A failure
// ends the trial and is its outcome. x belongs to the caller.
func (x *executor) sequence(ctx context.Context, s *session, t *separate) error {
	all := x.stmt
	outcomes := make([]outcome.Outcome, 1+len(all.Then))
	for i := range outcomes {
		step := all.step(i)
		step.Worlds = []string{x.separateText(step.Worlds[t.world], t)}
		x.bind(step)
		if err := x.pipeline(ctx, s, []trial{{into: &outcomes[i]}}); err != nil {
			return err
		}
		if outcomes[i].Failed() {
			*t.into = outcomes[i]
			return nil
		}
	}
	if *t.into = outcome.Join(outcomes); len(t.into.Rows) > x.player.opt.MaxRows {
		*t.into = outcome.Outcome{SQLState: TooLarge}
	}
	return nil
}

// Text returns the texts of all statements in one world, separated by semicolons.
func (s Statement) Text(world int) string {
	text := s.Worlds[world]
	for i := range s.Then {
		text += ";\n" + s.Then[i].Worlds[world]
	}
	return text
}
