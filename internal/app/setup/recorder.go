package setup

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"

	"github.com/dpwatch/dpwatch/config"
	"github.com/dpwatch/dpwatch/internal/ledger"
)

// OpenRecorder returns a function that opens the ledger for what this process captures while another process audits the
// engine; nil if audits are kept in memory only.
func OpenRecorder(c config.Config) func(context.Context) (*ledger.Recorder, error) {
	o, stored := LedgerOptions(c)
	if !stored || withholds(c.Ledger) { // what is captured cannot be left in the ledger
		return nil
	}
	return func(ctx context.Context) (*ledger.Recorder, error) {
		l, err := ledger.Open(ctx, o)
		if err != nil {
			return nil, err
		}
		if err = CheckHidden(ctx, c, l); err == nil {
			var r *ledger.Recorder
			if r, err = l.Recorder(ctx, c.EngineName(), ThisProcess(c)); err == nil {
				return r, nil
			}
		}
		l.Close()
		return nil, err
	}
}

// ThisProcess returns what other processes of the engine read of this one.
func ThisProcess(c config.Config) ledger.Process {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	return ledger.Process{Host: host, Configuration: ConfigurationHash(c)}
}

// ConfigurationHash returns a hash of what decides about audits: claims, tables, copies and the rules of audits,
// without what may differ from machine to machine; "" if it cannot be computed. Secrets are not part of it.
func ConfigurationHash(c config.Config) string {
	c.Audit.Workers, c.Audit.Memory = 0, 0
	text, err := json.Marshal([]any{c.Privacy, c.Claims, c.Audit, c.Neighbours, c.Budgets, c.Shadow.D0, c.Shadow.D1, c.Shadow.TwinSchema(), c.Shadow.GuardSchema(), c.Shadow.OwnEngines()})
	if err != nil {
		return ""
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:8])
}
