package read

import (
	"cmp"
	"encoding/base64"
	"errors"
	"strconv"
	"strings"
	"time"
)

// position is where a page of audits ends: the next one begins after it. Audits are in the order of compare, which
// changes while clients run queries: an audit whose query ran since the last page moves to the front and is not in the
// next one.
type position struct {
	violation bool
	last      time.Time
	key       string
}

// ErrCursor is the error of a cursor that Select did not return.
var ErrCursor = errors.New("the cursor is not one of dpwatch: use next_cursor of the page before")

func (a *Audit) position() position { return position{a.Violation(), a.LastSeen, a.Key} }

// compare orders violations first, then the latest query first.
func (p position) compare(q position) int {
	if p.violation != q.violation {
		if p.violation {
			return -1
		}
		return 1
	}
	return cmp.Or(q.last.Compare(p.last), cmp.Compare(p.key, q.key))
}

// cursor returns the position as opaque text.
func (p position) cursor() string {
	return base64.RawURLEncoding.EncodeToString([]byte(strings.Join([]string{strconv.FormatBool(p.violation), p.last.UTC().Format(time.RFC3339Nano), p.key}, " ")))
}

func parseCursor(text string) (p position, err error) {
	raw, err := base64.RawURLEncoding.DecodeString(text)
	parts := strings.SplitN(string(raw), " ", 3)
	if err != nil || len(parts) != 3 {
		return p, ErrCursor
	}
	violation, err := strconv.ParseBool(parts[0])
	if err != nil {
		return p, ErrCursor
	}
	last, err := time.Parse(time.RFC3339Nano, parts[1])
	if err != nil {
		return p, ErrCursor
	}
	return position{violation, last, parts[2]}, nil
}
