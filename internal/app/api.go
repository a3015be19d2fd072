package app

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"time"

	"github.com/dpwatch/dpwatch/internal/withheld"
)

// ledgerTimeout limits how long a request reads the ledger: less than the admin port takes to write an answer.
const ledgerTimeout = 20 * time.Second

// coveragePeriod is the default period of a coverage.
const coveragePeriod = 24 * time.Hour

// coverage answers GET /api/coverage from the ledger; the parameters are engine and since (24h). One request at a time reads
// the ledger.
func (r *Relay) coverage(w http.ResponseWriter, q *http.Request) {
	period, err := time.ParseDuration(cmp.Or(q.FormValue("since"), coveragePeriod.String()))
	if err != nil || period <= 0 || period > maxCoveragePeriod {
		http.Error(w, "dpwatch: since must be a duration of more than 0, for example 24h", http.StatusBadRequest)
		return
	}
	r.fromLedger(w, q, func(ctx context.Context) (any, error) {
		c, err := LedgerEngine(*r.current.Load(), q.FormValue("engine"))
		if err != nil {
			return nil, unknownEngineError{err}
		}
		return CoverageFromLedger(ctx, c, q.FormValue("engine"), period)
	})
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
