package records

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/dpwatch/dpwatch/config"
	"github.com/dpwatch/dpwatch/internal/app/setup"
	"github.com/dpwatch/dpwatch/internal/app/status"
	"github.com/dpwatch/dpwatch/internal/ledger"
	"github.com/dpwatch/dpwatch/internal/read"
)

// ErrAmbiguous is wrapped by the error for a prefix of several keys.
var ErrAmbiguous = errors.New("several audits in the ledger begin")

// ReadAudit reads the query whose key begins with prefix.
func ReadAudit(ctx context.Context, c config.Config, prefix string) (read.Stored, error) {
	l, s, err := FindInLedgers(ctx, c, prefix)
	switch {
	case errors.Is(err, setup.ErrNoLedger):
		return read.Stored{}, fmt.Errorf("%w %q, and %w", read.ErrNoAudit, prefix, setup.ErrNoLedger)
	case errors.Is(err, read.ErrNoAudit):
		return read.Stored{}, fmt.Errorf("%w %q, neither in memory nor in the ledger", read.ErrNoAudit, prefix)
	case err != nil:
		return read.Stored{}, err
	}
	l.Close()
	return s, nil
}

// FindInLedgers returns the query whose key begins with prefix, and the open ledger that has it.
func FindInLedgers(ctx context.Context, c config.Config, prefix string) (l *ledger.Ledger, s read.Stored, err error) {
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

// findStored returns the query whose key begins with prefix.
func findStored(ctx context.Context, l *ledger.Ledger, prefix string) (read.Stored, error) {
	found, err := l.Stored(ctx, prefix, read.ShownIDs)
	if err != nil {
		return read.Stored{}, err
	}
	switch len(found) {
	case 0:
		return read.Stored{}, fmt.Errorf("%w %q in the ledger: dpwatch audits list lists them", read.ErrNoAudit, prefix)
	case 1:
		return found[0], nil
	}
	var keys []string
	for _, s := range found {
		keys = append(keys, s.Key)
	}
	return read.Stored{}, fmt.Errorf("%w with %q: give more digits; for example %s", ErrAmbiguous, prefix, strings.Join(keys, ", "))
}

// FetchAudit asks a listener for an audit in its ledger.
func FetchAudit(ctx context.Context, t status.Target, prefix string) (read.Stored, error) {
	var s read.Stored
	text, err := t.Get(ctx, "/api/ledger/audits/"+url.PathEscape(prefix))
	if err == nil {
		err = json.Unmarshal(text, &s)
	}
	return s, err
}
