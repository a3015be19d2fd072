package oneoff

import (
	"errors"
	"strings"

	"github.com/dpwatch/dpwatch/rewrite"
)

// MaxSQLBytes is the maximum length of a statement in commands.
const MaxSQLBytes = 1 << 20

// Refusal returns an error that explains why a statement was not rewritten, with a caret under the position; other
// errors are returned unchanged.
func Refusal(sql string, err error) error {
	var u *rewrite.UnsupportedError
	if !errors.As(err, &u) {
		return err
	}
	text := "refused: " + string(u.Reason)
	if u.Detail != "" {
		text += ": " + u.Detail
	}
	if line, column, ok := place(sql, u.Offset); ok {
		text += "\n  " + line + "\n  " + strings.Repeat(" ", column) + "^"
	}
	if u.Hint != "" {
		text += "\n" + u.Hint
	}
	if strings.Contains(u.Hint, "claims.safe_functions") {
		text += "\n(for this command: --safe-function)"
	}
	return errors.New(text)
}

// place returns the line of sql that contains a byte offset, truncated to fit on a screen, and the column in
// characters. ok is false if the offset is outside sql.
func place(sql string, offset int) (line string, column int, ok bool) {
	if offset < 0 || offset > len(sql) || sql == "" {
		return "", 0, false
	}
	start := strings.LastIndexByte(sql[:offset], '\n') + 1
	end := len(sql)
	if i := strings.IndexByte(sql[offset:], '\n'); i >= 0 {
		end = offset + i
	}
	const before, after = 60, 60
	from, to := max(start, offset-before), min(end, offset+after)
	column = len([]rune(strings.ToValidUTF8(sql[from:offset], "?")))
	return strings.ReplaceAll(strings.ToValidUTF8(sql[from:to], "?"), "\t", " "), column, true
}
