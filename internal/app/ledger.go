package app

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/dpwatch/dpwatch/config"
	"github.com/dpwatch/dpwatch/internal/ledger"
	"github.com/dpwatch/dpwatch/internal/preflight"
	"github.com/dpwatch/dpwatch/internal/withheld"
)

// ledgerConnections bounds the connections of one process to the ledger, besides the one that holds its lock.
const ledgerConnections = 4

// ledgerOptions translates the configuration to the options of package ledger; false if audits are kept in memory only.
func ledgerOptions(c config.Config) (ledger.Options, bool) {
	dsn := c.LedgerDSN()
	return ledger.Options{DSN: dsn, Schema: c.Ledger.Schema, Connections: ledgerConnections, Statements: statementsOf(c.Ledger)}, dsn != ""
}

// statementsOf returns how statements are stored. The configuration is valid; statements of another one are not stored.
func statementsOf(l config.Ledger) *ledger.Protection {
	form := map[string]ledger.Form{config.StatementsPlain: ledger.Plain, config.StatementsEncrypted: ledger.Encrypted}
	stored, known := form[l.Statements]
	keys, err := l.StatementKeys()
	if !known || err != nil {
		stored = ledger.Withheld
	}
	protection, err := ledger.NewProtection(stored, keys...)
	if err != nil { // there is no key
		protection, _ = ledger.NewProtection(ledger.Withheld)
	}
	return protection
}

// openLedger returns a function that opens the ledger and makes this process the only one that audits the engine; nil if
// audits are kept in memory only.
func openLedger(c config.Config) func(context.Context) (*ledger.Engine, error) {
	o, stored := ledgerOptions(c)
	if !stored {
		return nil
	}
	return func(ctx context.Context) (*ledger.Engine, error) {
		if c.Ledger.Migrate {
			if _, _, err := ledger.Migrate(ctx, o); err != nil {
				return nil, err
			}
		}
		l, err := ledger.Open(ctx, o)
		if err != nil {
			return nil, err
		}
		engine, err := acquire(ctx, c, l)
		if err != nil {
			l.Close()
		}
		return engine, err
	}
}

// openSpool returns a function that opens the spool of the ledger; nil if there is none.
func openSpool(c config.Config) func() (*ledger.Spool, error) {
	if c.Ledger.Spool.Dir == "" {
		return nil
	}
	return func() (*ledger.Spool, error) {
		return ledger.OpenSpool(c.Ledger.Spool.Dir, int64(c.Ledger.Spool.MaxBytes), statementsOf(c.Ledger))
	}
}

func acquire(ctx context.Context, c config.Config, l *ledger.Ledger) (*ledger.Engine, error) {
	if err := hidden(ctx, c, l); err != nil {
		return nil, err
	}
	return l.Acquire(ctx, c.EngineName())
}

// hidden returns an error if the replay role can read the ledger.
func hidden(ctx context.Context, c config.Config, l *ledger.Ledger) error {
	replay, err := pgx.ParseConfig(c.Shadow.DSN.Reveal())
	if err != nil {
		return fmt.Errorf("shadow.dsn is not a connection string")
	}
	return l.CheckHidden(ctx, replay.User)
}

// errNoLedger is returned by what needs a ledger.
var errNoLedger = errors.New("there is no ledger: ledger.dsn is memory, or neither ledger.dsn nor neighbours.target is set")

// MigrateLedgers creates the schema of each ledger of the engines or upgrades it, and reports the versions before and after.
func MigrateLedgers(ctx context.Context, c config.Config, report func(from, to int64)) error {
	for _, one := range ledgers(c) {
		o, stored := ledgerOptions(one)
		if !stored {
			return errNoLedger
		}
		from, to, err := ledger.Migrate(ctx, o)
		if err != nil {
			return err
		}
		report(from, to)
	}
	return nil
}

// checkLedger checks that the ledger can be used and that the replay role cannot read it. It changes nothing.
func checkLedger(c config.Config) preflight.Task {
	return func(ctx context.Context) []preflight.Check {
		ctx, cancel := context.WithTimeout(ctx, checkTimeout)
		defer cancel()
		o, stored := ledgerOptions(c)
		check := preflight.Check{Name: "ledger", Object: "schema " + o.Schema, Status: preflight.OK, Message: "can be used; the replay role cannot read it"}
		if !stored {
			check.Object, check.Message = "memory", "audits are lost when the auditor process ends"
			if c.Ledger.DSN == "" {
				check.Status, check.Fix = preflight.Warning, "set ledger.dsn (memory if that is intended)"
			}
			return []preflight.Check{check}
		}
		err := useLedger(ctx, c, o)
		switch {
		case errors.Is(err, ledger.ErrNotMigrated) && c.Ledger.Migrate:
			check.Message = "does not exist or is of an earlier version: run creates or upgrades it"
		case errors.Is(err, ledger.ErrNotMigrated):
			check.Status, check.Message, check.Fix = preflight.Fault, "does not exist or is of an earlier version, and ledger.migrate is false", "run `dpwatch migrate`"
		case err != nil:
			check.Status, check.Message, check.Fix = preflight.Fault, withheld.Reveal(err), "correct ledger.dsn, or the privileges of its role and of the replay role (docs/ledger.md)"
		}
		return []preflight.Check{check}
	}
}

// useLedger opens and closes the ledger as run does, without becoming the engine's auditor.
func useLedger(ctx context.Context, c config.Config, o ledger.Options) error {
	l, err := ledger.Open(ctx, o)
	if err != nil {
		return err
	}
	defer l.Close()
	return hidden(ctx, c, l)
}
