package read

import (
	"fmt"
	"strings"

	"github.com/dpwatch/dpwatch/analysis"
	"github.com/dpwatch/dpwatch/internal/app/show"
)

// engineRows returns what is known about the versions of the engine that an audit saw.
func (a *Audit) engineRows() [][2]string {
	rows := [][2]string{{"engine version", a.Engine}}
	if a.EngineRestarts > 0 {
		rows = append(rows, [2]string{"new engines", fmt.Sprintf("%d: the evidence began again because the engine changed", a.EngineRestarts)})
	}
	if s := a.Standing; s != nil {
		text := fmt.Sprintf("engine version %s, first seen %s, epsilon lower bound %s", s.Engine, show.Moment(s.FirstSeen), analysis.LowerText(s.Lower, s.Claimed))
		if a.Result().Verdict != analysis.Violation {
			text += "; the present audit has not resolved it" + MissingText(s)
		}
		rows = append(rows, [2]string{"violation", text})
	}
	if r := a.Resolved; r != nil {
		rows = append(rows, [2]string{"resolved", fmt.Sprintf("violation of engine version %s, first seen %s, epsilon lower bound %s; resolved %s by engine version %s",
			r.Engine, show.Moment(r.FirstSeen), analysis.LowerText(r.Lower, r.Claimed), show.Moment(r.At), r.By)})
	}
	if len(a.Differ) > 0 {
		rows = append(rows, [2]string{"differs from production", strings.Join(a.Differ, ", ")})
	}
	return rows
}

// MissingText says how many trials are missing until a violation is resolved; "" if that is not known.
func MissingText(s *Standing) string {
	if s.Missing == 0 {
		return ""
	}
	return fmt.Sprintf(": %d more pairs of trials without evidence resolve it", s.Missing)
}
