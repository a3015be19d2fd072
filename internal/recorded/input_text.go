package recorded

import (
	"fmt"
	"strings"
)

// String describes how a file was read.
func (in Input) String() string {
	if in.Format == Lines || in.Format == JSONL {
		return fmt.Sprintf("%s: one result a line, %d results%s", in.Format, in.Trials, empties(in))
	}
	text := fmt.Sprintf("%s: columns %s", in.Format, strings.Join(in.Columns, ", "))
	if in.Trial == "" {
		return text + fmt.Sprintf("; every line a trial, %d trials%s", in.Trials, empties(in))
	}
	text += "; trials by " + in.Trial
	if len(in.Keys) > 0 {
		text += ", keys " + strings.Join(in.Keys, ", ")
	}
	return text + fmt.Sprintf("; %d rows in %d trials%s", in.Rows, in.Trials, empties(in))
}

func empties(in Input) string {
	if in.Empty == 0 {
		return ""
	}
	return fmt.Sprintf(", %d of them without a row", in.Empty)
}
