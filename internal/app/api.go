package app

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"time"

	"github.com/dpwatch/dpwatch/internal/withheld"
)

// coverageTimeout limits how long a request reads the ledger: less than the admin port takes to write an answer.
const coverageTimeout = 20 * time.Second

// coveragePeriod is the default period of a coverage.
const coveragePeriod = 24 * time.Hour

// coverage answers GET /api/coverage from the ledger; the parameters are engine and since (24h). One request at a time reads
// the ledger.
func (r *Relay) coverage(w http.ResponseWriter, q *http.Request) {
	if !r.reading.TryLock() {
		w.Header().Set("Retry-After", "1")
		http.Error(w, "dpwatch: another request reads the ledger; try again later", http.StatusServiceUnavailable)
		return
	}
	defer r.reading.Unlock()
	period, err := time.ParseDuration(cmp.Or(q.FormValue("since"), coveragePeriod.String()))
	if err != nil || period <= 0 || period > maxCoveragePeriod {
		http.Error(w, "dpwatch: since must be a duration of more than 0, for example 24h", http.StatusBadRequest)
		return
	}
	ctx, cancel := context.WithTimeout(q.Context(), coverageTimeout)
	defer cancel()
	c, err := CoverageFromLedger(ctx, r.cfg, q.FormValue("engine"), period)
	if err != nil {
		http.Error(w, "dpwatch: "+err.Error(), http.StatusServiceUnavailable)
		return
	}
	writeJSON(w, c)
}

func writeJSON(w http.ResponseWriter, v any) {
	text, err := json.Marshal(v)
	if err != nil {
		http.Error(w, "dpwatch: "+withheld.Reveal(err), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(append(text, '\n'))
}
