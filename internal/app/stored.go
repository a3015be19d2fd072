package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/dpwatch/dpwatch/analysis"
	"github.com/dpwatch/dpwatch/config"
	"github.com/dpwatch/dpwatch/internal/ledger"
)

// StoredAudit is an audit that only the ledger has: it was evicted, is of another engine, or has not been restored.
type StoredAudit struct{ ledger.Stored }

var errAmbiguous = errors.New("several audits in the ledger begin")

// storedFromLedger reads the query whose key begins with prefix.
func storedFromLedger(ctx context.Context, c config.Config, prefix string) (StoredAudit, error) {
	l, s, err := findInLedgers(ctx, c, prefix)
	switch {
	case errors.Is(err, errNoLedger):
		return StoredAudit{}, fmt.Errorf("%w %q, and %w", ErrNoAudit, prefix, errNoLedger)
	case errors.Is(err, ErrNoAudit):
		return StoredAudit{}, fmt.Errorf("%w %q, neither in memory nor in the ledger", ErrNoAudit, prefix)
	case err != nil:
		return StoredAudit{}, err
	}
	l.Close()
	return s, nil
}

// findInLedgers returns the query whose key begins with prefix, and the open ledger that has it.
func findInLedgers(ctx context.Context, c config.Config, prefix string) (l *ledger.Ledger, s StoredAudit, err error) {
	for _, one := range ledgers(c) {
		if l, err = openStored(ctx, one); err != nil {
			return nil, s, err
		}
		if s, err = findStored(ctx, l, prefix); err == nil {
			return l, s, nil
		}
		l.Close()
		if !errors.Is(err, ErrNoAudit) {
			break
		}
	}
	return nil, s, err
}

// openStored opens the ledger without becoming the engine's auditor.
func openStored(ctx context.Context, c config.Config) (*ledger.Ledger, error) {
	o, stored := ledgerOptions(c)
	if !stored {
		return nil, errNoLedger
	}
	return ledger.Open(ctx, o)
}

// id returns the id of the audit.
func (s *StoredAudit) id() string { return s.Key[:min(12, len(s.Key))] }

// findStored returns the query whose key begins with prefix.
func findStored(ctx context.Context, l *ledger.Ledger, prefix string) (StoredAudit, error) {
	found, err := l.Stored(ctx, prefix, shownIDs)
	if err != nil {
		return StoredAudit{}, err
	}
	switch len(found) {
	case 0:
		return StoredAudit{}, fmt.Errorf("%w %q in the ledger: dpwatch audits list lists them", ErrNoAudit, prefix)
	case 1:
		return StoredAudit{found[0]}, nil
	}
	var keys []string
	for _, s := range found {
		keys = append(keys, s.Key)
	}
	return StoredAudit{}, fmt.Errorf("%w with %q: give more digits; for example %s", errAmbiguous, prefix, strings.Join(keys, ", "))
}

// storedAudit answers GET /api/ledger/audits/{id}. One request at a time reads the ledger.
func (r *Relay) storedAudit(w http.ResponseWriter, q *http.Request) {
	r.fromLedger(w, q, func(ctx context.Context) (any, error) {
		return storedFromLedger(ctx, *r.current.Load(), q.PathValue("id"))
	})
}

// FetchStored asks a listener for an audit in its ledger.
func FetchStored(ctx context.Context, t Target, prefix string) (StoredAudit, error) {
	var s StoredAudit
	text, err := t.Get(ctx, "/api/ledger/audits/"+url.PathEscape(prefix))
	if err == nil {
		err = json.Unmarshal(text, &s)
	}
	return s, err
}

// Write writes what the ledger has as text.
func (s StoredAudit) Write(w io.Writer) error {
	var b strings.Builder
	verdict := s.Verdict
	if verdict == "" {
		verdict = s.State
	}
	if verdict == "" {
		verdict = "not begun"
	}
	fmt.Fprintf(&b, "audit %s: %s (from the ledger: the auditor of this dpwatch does not hold it in memory)\n", s.id(), strings.ReplaceAll(verdict, "_", " "))
	claim := "none"
	if s.Epsilon != nil {
		claim = fmt.Sprintf("epsilon %g", *s.Epsilon)
		if s.Delta != nil && *s.Delta > 0 {
			claim += fmt.Sprintf(", delta %g", *s.Delta)
		}
		claim += ", from " + s.Source
	}
	bound := "none"
	if s.Lower != nil {
		bound = Number(analysis.Float(*s.Lower))
	}
	section(&b, "query", [][2]string{
		{"summary", s.Summary},
		{"engine", s.Engine},
		{"executions", fmt.Sprintf("%d, first %s, last %s", s.Executions, moment(s.FirstSeen), moment(s.LastSeen))},
		{"key", s.Key},
		{"fingerprint", s.Fingerprint},
		{"claim", claim},
		{"rule of the claim", s.Rule},
		{"state", s.State},
		{"epsilon lower bound", bound},
		{"trials", fmt.Sprint(s.Trials)},
	})
	var users, history [][2]string
	for _, u := range s.Users {
		users = append(users, [2]string{u.User, fmt.Sprintf("database %s, application %q, %d executions, last %s", u.Database, u.Application, u.Executions, moment(u.LastSeen))})
	}
	section(&b, "users", users)
	for _, e := range s.History {
		history = append(history, [2]string{moment(e.At), strings.TrimSpace(e.State + " " + strings.ReplaceAll(e.Verdict, "_", " ") + " " + e.Reason)})
	}
	section(&b, "history, the latest first", history)
	section(&b, "what operators did, the latest first", actionRows(s.Actions))
	_, err := io.WriteString(w, printable(b.String()))
	return err
}

// fromLedger answers a request from the ledger. One request at a time reads it.
func (r *Relay) fromLedger(w http.ResponseWriter, q *http.Request, read func(context.Context) (any, error)) {
	if !r.reading.TryLock() {
		w.Header().Set("Retry-After", "1")
		http.Error(w, "dpwatch: another request reads the ledger; try again later", http.StatusServiceUnavailable)
		return
	}
	defer r.reading.Unlock()
	ctx, cancel := context.WithTimeout(q.Context(), ledgerTimeout)
	defer cancel()
	v, err := read(ctx)
	switch {
	case errors.Is(err, ErrNoAudit):
		http.Error(w, "dpwatch: "+err.Error(), http.StatusNotFound)
	case errors.Is(err, errAmbiguous), errors.As(err, &unknownEngineError{}):
		http.Error(w, "dpwatch: "+err.Error(), http.StatusBadRequest)
	case err != nil:
		http.Error(w, "dpwatch: "+err.Error(), http.StatusServiceUnavailable)
	default:
		writeJSON(w, v)
	}
}
