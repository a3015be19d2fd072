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
	at := len(s.Worlds) // the place of the twin
	pick := func(worlds []string, text string) []string {
		if e.Controlling() {
			return []string{worlds[0], text}
		}
		return append([]string{text}, worlds[1:]...)
	}
	if e.Controlling() {
		s.Places = []int{0, at}
	} else {
		s.Places = []int{at}
		for i := 1; i < at; i++ {
			s.Places = append(s.Places, i)
		}
	}
	s.Worlds, s.Then, s.Hoist = pick(s.Worlds, twin[0]), slices.Clone(s.Then), nil
	for i := range s.Then {
		s.Then[i].Worlds = pick(s.Then[i].Worlds, twin[1+i])
	}
	return s
}
