package app

import (
	"cmp"
	"encoding/base64"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// position is where a page of audits ends: the next one begins after it. Audits are in the order of compare, which changes
// while clients run queries: an audit whose query ran since the last page moves to the front and is not in the next one.
type position struct {
	violation bool
	last      time.Time
	key       string
}

var errCursor = errors.New("the cursor is not one of dpwatch: use next_cursor of the page before")

func (a *AuditRow) position() position { return position{a.violation(), a.LastSeen, a.Key} }

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
		return p, errCursor
	}
	violation, err := strconv.ParseBool(parts[0])
	if err != nil {
		return p, errCursor
	}
	last, err := time.Parse(time.RFC3339Nano, parts[1])
	if err != nil {
		return p, errCursor
	}
	return position{violation, last, parts[2]}, nil
}

// maxPage is the greatest number of audits in an answer of GET /api/audits.
const maxPage = 1000

// listAudits answers GET /api/audits; the parameters are state, verdict, limit (100), cursor and, of several engines, engine.
func (r *Relay) listAudits(w http.ResponseWriter, q *http.Request) {
	f := Filter{State: q.FormValue("state"), Verdict: q.FormValue("verdict"), Cursor: q.FormValue("cursor")}
	var err error
	if f.Limit, err = strconv.Atoi(cmp.Or(q.FormValue("limit"), "100")); err != nil || f.Limit < 1 || f.Limit > maxPage {
		http.Error(w, "dpwatch: limit must be from 1 to "+strconv.Itoa(maxPage), http.StatusBadRequest)
		return
	}
	if f.State != "" && !slices.Contains(AuditStates(), f.State) || f.Verdict != "" && !slices.Contains(AuditVerdicts(), f.Verdict) {
		http.Error(w, "dpwatch: state must be one of "+strings.Join(AuditStates(), ", ")+"; verdict one of "+strings.Join(AuditVerdicts(), ", "), http.StatusBadRequest)
		return
	}
	e, err := r.engine(q.FormValue("engine"))
	if err != nil {
		http.Error(w, "dpwatch: "+err.Error(), http.StatusBadRequest)
		return
	}
	text, err := e.statusJSON()
	var s *Snapshot
	if err == nil {
		s, err = newSnapshot(text)
	}
	if err != nil {
		http.Error(w, "dpwatch: "+err.Error(), http.StatusInternalServerError)
		return
	}
	l, err := s.List(f)
	switch {
	case errors.Is(err, errCursor):
		http.Error(w, "dpwatch: "+err.Error(), http.StatusBadRequest)
	case err != nil:
		w.Header().Set("Retry-After", "1")
		http.Error(w, "dpwatch: the auditor has not sent its status yet", http.StatusServiceUnavailable)
	default:
		writeJSON(w, l)
	}
}
