package relay

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"github.com/dpwatch/dpwatch/internal/app/records"
	"github.com/dpwatch/dpwatch/internal/app/setup"
	"github.com/dpwatch/dpwatch/internal/ledger"
	"github.com/dpwatch/dpwatch/internal/read"
	"github.com/dpwatch/dpwatch/internal/web"
)

// coveragePeriod is the default period of a coverage.
const coveragePeriod = 24 * time.Hour

// coverage answers GET /api/coverage from the ledger; the parameters are engine and since (24h). One request at a time
// reads the ledger.
func (a *api) coverage(w http.ResponseWriter, q *http.Request) {
	period, err := time.ParseDuration(cmp.Or(q.FormValue("since"), coveragePeriod.String()))
	if err != nil || period <= 0 || period > records.MaxCoveragePeriod {
		http.Error(w, "dpwatch: since must be a duration of more than 0, for example 24h", http.StatusBadRequest)
		return
	}
	a.fromLedger(w, q, func(ctx context.Context) (any, error) {
		c, err := setup.LedgerEngine(*a.configuration.current.Load(), q.FormValue("engine"))
		if err != nil {
			return nil, RequestError{err}
		}
		return readCoverage(ctx, c, q.FormValue("engine"), period)
	})
}

// RequestError is an error of the request itself: it names no engine of the configuration, say, or none of several.
type RequestError struct{ error }

func writeJSON(w http.ResponseWriter, v any) {
	text, err := json.Marshal(v)
	if err != nil {
		http.Error(w, "dpwatch: "+err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(append(text, '\n'))
}

// budgets answers GET /api/budgets; the parameter is engine, if there are several.
func (a *api) budgets(w http.ResponseWriter, q *http.Request) {
	a.fromLedger(w, q, func(ctx context.Context) (any, error) {
		c, err := a.configuration.current.Load().ForEngine(q.FormValue("engine"))
		if err != nil {
			return nil, RequestError{err}
		}
		return records.ReadBudgets(ctx, c)
	})
}

// storedAudit answers GET /api/ledger/audits/{id}. One request at a time reads the ledger.
func (a *api) storedAudit(w http.ResponseWriter, q *http.Request) {
	a.fromLedger(w, q, func(ctx context.Context) (any, error) {
		a, err := records.ReadAudit(ctx, *a.configuration.current.Load(), q.PathValue("id"))
		if !web.MayReadValues(ctx) {
			a.History = read.WithholdReasons(a.History)
		}
		return a, err
	})
}

// fromLedger answers a request from the ledger. One request at a time reads it.
func (a *api) fromLedger(w http.ResponseWriter, q *http.Request, answer func(context.Context) (any, error)) {
	if !a.reading.TryLock() {
		w.Header().Set("Retry-After", "1")
		http.Error(w, "dpwatch: another request reads the ledger; try again later", http.StatusServiceUnavailable)
		return
	}
	defer a.reading.Unlock()
	ctx, cancel := context.WithTimeout(q.Context(), setup.LedgerTimeout)
	defer cancel()
	v, err := answer(ctx)
	switch {
	case errors.Is(err, read.ErrNoAudit):
		http.Error(w, "dpwatch: "+err.Error(), http.StatusNotFound)
	case errors.Is(err, records.ErrAmbiguous), errors.Is(err, ledger.ErrNoEngine), errors.As(err, &RequestError{}):
		http.Error(w, "dpwatch: "+err.Error(), http.StatusBadRequest)
	case err != nil:
		http.Error(w, "dpwatch: "+err.Error(), http.StatusServiceUnavailable)
	default:
		writeJSON(w, v)
	}
}
