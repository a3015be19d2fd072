package trial

import (
	"slices"

	"github.com/dpwatch/dpwatch/internal/audit/evidence"
	"github.com/dpwatch/dpwatch/replay"
)

// OnWorlds returns a statement, whose worlds are D0 and the neighbours, for the worlds of the evidence's next trials.
// twin has the texts of the statement and of those after it on the twin, which a control and a confirmation after it
// need.
func OnWorlds(s replay.Statement, e *evidence.Evidence, twin []string) replay.Statement {
	if e == nil || !e.Controlling() && !e.TwinInPlace() {
		return s
	}
	places := s.Places
	if places == nil {
		for i := range s.Worlds {
			places = append(places, i)
		}
	}
	s.Places = pick(e, places, slices.Max(places)+1) // the twin, or the guard after it, follows
	s.Worlds, s.Then, s.Hoist = pick(e, s.Worlds, twin[0]), slices.Clone(s.Then), nil
	for i := range s.Then {
		s.Then[i].Worlds = pick(e, s.Then[i].Worlds, twin[1+i])
	}
	return s
}

// pick returns of the worlds those of a control or of a confirmation after it.
func pick[T any](e *evidence.Evidence, worlds []T, twin T) []T {
	if e.Controlling() {
		return []T{worlds[0], twin}
	}
	return append([]T{twin}, worlds[1:]...)
}
