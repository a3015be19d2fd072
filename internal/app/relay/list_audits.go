package relay

import (
	"cmp"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/dpwatch/dpwatch/internal/app/status"
	"github.com/dpwatch/dpwatch/internal/read"
	"github.com/dpwatch/dpwatch/internal/web"
)

// maxPage is the greatest number of audits in an answer of GET /api/audits.
const maxPage = 1000

// listAudits answers GET /api/audits; the parameters are state, verdict, limit (100), cursor and, of several engines,
// engine.
func (a *api) listAudits(w http.ResponseWriter, q *http.Request) {
	f := read.Filter{State: q.FormValue("state"), Verdict: q.FormValue("verdict"), Cursor: q.FormValue("cursor")}
	var err error
	if f.Limit, err = strconv.Atoi(cmp.Or(q.FormValue("limit"), "100")); err != nil || f.Limit < 1 || f.Limit > maxPage {
		http.Error(w, "dpwatch: limit must be from 1 to "+strconv.Itoa(maxPage), http.StatusBadRequest)
		return
	}
	if f.State != "" && !slices.Contains(read.FilterStates(), f.State) || f.Verdict != "" && !slices.Contains(read.Verdicts(), f.Verdict) {
		http.Error(w, "dpwatch: state must be one of "+strings.Join(read.FilterStates(), ", ")+"; verdict one of "+strings.Join(read.Verdicts(), ", "), http.StatusBadRequest)
		return
	}
	e, err := a.engines.engine(q.FormValue("engine"))
	if err != nil {
		http.Error(w, "dpwatch: "+err.Error(), http.StatusBadRequest)
		return
	}
	text, err := e.statusJSON(web.MayReadValues(q.Context()))
	var s *status.Snapshot
	if err == nil {
		s, err = status.NewSnapshot(text)
	}
	if err != nil {
		http.Error(w, "dpwatch: "+err.Error(), http.StatusInternalServerError)
		return
	}
	l, err := s.List(f)
	switch {
	case errors.Is(err, read.ErrCursor):
		http.Error(w, "dpwatch: "+err.Error(), http.StatusBadRequest)
	case err != nil:
		w.Header().Set("Retry-After", "1")
		http.Error(w, "dpwatch: the auditor has not sent its status yet", http.StatusServiceUnavailable)
	default:
		writeJSON(w, l)
	}
}
