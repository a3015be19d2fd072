package outcome

import (
	"fmt"
	"strings"
)

// Ends is what is known of a statement that ends its session: what became of trials on each copy that ran alone, each
// in a session of its own, beside another session.
type Ends struct {
	Copies []CopyEnds `json:"copies"` // in which there were such trials, the one whose trials end first; none = not known on which
	Down   bool       `json:"down,omitempty"`
}

// CopyEnds are the trials on the copies in a schema.
type CopyEnds struct {
	Schema string `json:"schema"`
	Place  int    `json:"place"` // of the copies: 0 is D0
	Trials int    `json:"trials"`
	Ended  int    `json:"ended"` // trials whose session ended
}

// The trials that show that a statement ends its session on one copy alone: as few as possible on that, because each
// may harm a server that others use.
const (
	MostEnds   = 2  // trials that may end their session, on one copy
	FewestKept = 20 // trials on another copy that all keep theirs
)

// OneCopy returns the copy on which alone the statement ends its session, and one on which it does not; false if that
// was not seen. It is a suspicion: more trials, which would confirm it, would end more sessions.
func (e *Ends) OneCopy() (ended, kept CopyEnds, yes bool) {
	for _, c := range e.Copies {
		switch {
		case c.Ended >= MostEnds:
			ended = c
		case c.Ended == 0 && c.Trials >= FewestKept:
			kept = c
		}
	}
	return ended, kept, ended.Trials > 0 && kept.Trials > 0
}

// Text says what happened, and on which copy. It has no value of a row.
func (e *Ends) Text() string {
	if e.Down {
		where := "one of the copies"
		if len(e.Copies) > 0 {
			where = "the copy " + e.Copies[0].Schema
		}
		return "a trial on " + where + " ended its session, and the whole database server went down with it"
	}
	if ended, kept, yes := e.OneCopy(); yes {
		return fmt.Sprintf("the engine ends the session on the copy %s (%d of %d trials) and never on %s (%d trials): who runs the query sees on which data it ran",
			ended.Schema, ended.Ended, ended.Trials, kept.Schema, kept.Trials)
	}
	var seen []string
	for _, c := range e.Copies {
		if c.Ended > 0 {
			seen = append(seen, fmt.Sprintf("%s (%d of %d trials)", c.Schema, c.Ended, c.Trials))
		}
	}
	return "the engine ends the session of trials on the copy " + strings.Join(seen, " and ")
}
