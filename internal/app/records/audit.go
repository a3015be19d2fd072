package records

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/url"
	"strings"
	"time"

	"github.com/dpwatch/dpwatch/analysis"
	"github.com/dpwatch/dpwatch/config"
	"github.com/dpwatch/dpwatch/internal/app/setup"
	"github.com/dpwatch/dpwatch/internal/app/status"
	"github.com/dpwatch/dpwatch/internal/ledger"
	"github.com/dpwatch/dpwatch/internal/read"
)

// Audit is an audit that only the ledger has: it was evicted, is of another engine, or has not been restored.
type Audit struct{ read.Stored }

// ErrAmbiguous is wrapped by the error for a prefix of several keys.
var ErrAmbiguous = errors.New("several audits in the ledger begin")

// ReadAudit reads the query whose key begins with prefix.
func ReadAudit(ctx context.Context, c config.Config, prefix string) (Audit, error) {
	l, s, err := FindInLedgers(ctx, c, prefix)
	switch {
	case errors.Is(err, setup.ErrNoLedger):
		return Audit{}, fmt.Errorf("%w %q, and %w", read.ErrNoAudit, prefix, setup.ErrNoLedger)
	case errors.Is(err, read.ErrNoAudit):
		return Audit{}, fmt.Errorf("%w %q, neither in memory nor in the ledger", read.ErrNoAudit, prefix)
	case err != nil:
		return Audit{}, err
	}
	l.Close()
	return s, nil
}

// FindInLedgers returns the query whose key begins with prefix, and the open ledger that has it.
func FindInLedgers(ctx context.Context, c config.Config, prefix string) (l *ledger.Ledger, s Audit, err error) {
	for _, one := range setup.Ledgers(c) {
		if l, err = Open(ctx, one); err != nil {
			return nil, s, err
		}
		if s, err = findStored(ctx, l, prefix); err == nil {
			return l, s, nil
		}
		l.Close()
		if !errors.Is(err, read.ErrNoAudit) {
			break
		}
	}
	return nil, s, err
}

// Open opens the ledger without becoming the engine's auditor.
func Open(ctx context.Context, c config.Config) (*ledger.Ledger, error) {
	o, stored := setup.LedgerOptions(c)
	if !stored {
		return nil, setup.ErrNoLedger
	}
	return ledger.Open(ctx, o)
}

// ID returns the id of the audit.
func (s *Audit) ID() string { return s.Key[:min(12, len(s.Key))] }

// findStored returns the query whose key begins with prefix.
func findStored(ctx context.Context, l *ledger.Ledger, prefix string) (Audit, error) {
	found, err := l.Stored(ctx, prefix, read.ShownIDs)
	if err != nil {
		return Audit{}, err
	}
	switch len(found) {
	case 0:
		return Audit{}, fmt.Errorf("%w %q in the ledger: dpwatch audits list lists them", read.ErrNoAudit, prefix)
	case 1:
		return Audit{found[0]}, nil
	}
	var keys []string
	for _, s := range found {
		keys = append(keys, s.Key)
	}
	return Audit{}, fmt.Errorf("%w with %q: give more digits; for example %s", ErrAmbiguous, prefix, strings.Join(keys, ", "))
}

// FetchAudit asks a listener for an audit in its ledger.
func FetchAudit(ctx context.Context, t status.Target, prefix string) (Audit, error) {
	var s Audit
	text, err := t.Get(ctx, "/api/ledger/audits/"+url.PathEscape(prefix))
	if err == nil {
		err = json.Unmarshal(text, &s)
	}
	return s, err
}

// Former is what the ledger had about an audit before it was reproduced.
type Former struct {
	Verdict   string         `json:"verdict"`
	Lower     analysis.Float `json:"epsilon_lower"` // null = none, or deterministic answers
	Trials    int64          `json:"trials"`
	Neighbour string         `json:"neighbour,omitempty"`
}

// standing returns the violation that is not resolved; nil = none.
func (s *Audit) standing() *read.Standing {
	v := new(read.Standing)
	if len(s.Violation) == 0 || json.Unmarshal(s.Violation, v) != nil || v.FirstSeen.Equal(time.Time{}) {
		return nil
	}
	return v
}

// Former returns the verdict of the ledger: a violation until it is resolved.
func (s *Audit) Former() Former {
	f := Former{Verdict: cmp.Or(s.Verdict, s.State), Lower: analysis.Float(math.NaN()), Trials: s.Trials}
	if s.Lower != nil {
		f.Lower = analysis.Float(*s.Lower)
	}
	if v := s.standing(); v != nil {
		f = Former{string(analysis.Violation), v.Lower, int64(v.Trials), v.Neighbour}
	}
	return f
}
