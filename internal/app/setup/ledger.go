package setup

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/jackc/pgx/v5"

	"github.com/dpwatch/dpwatch/config"
	"github.com/dpwatch/dpwatch/internal/ledger"
)

// ledgerConnections bounds the connections of one process to the ledger, besides the one that holds its lock.
const ledgerConnections = 4

// LedgerOptions translates the configuration to the options of package ledger; false if audits are kept in memory only.
func LedgerOptions(c config.Config) (ledger.Options, bool) {
	dsn := c.LedgerDSN()
	return ledger.Options{DSN: dsn, Schema: c.Ledger.Schema, Connections: ledgerConnections, Withhold: withholds(c.Ledger)}, dsn != ""
}

// withholds reports whether statements are not stored.
func withholds(l config.Ledger) bool { return l.Statements != config.StatementsPlain }

// OpenLedger returns a function that opens the ledger and makes this process the only one that audits the engine; nil
// if audits are kept in memory only. The function creates or upgrades the ledger when it is first called: a ledger that
// is away later, while it is restored for example, is not replaced by an empty one. Its calls do not overlap.
func OpenLedger(c config.Config) func(context.Context) (*ledger.Engine, error) {
	o, stored := LedgerOptions(c)
	if !stored {
		return nil
	}
	migrate := c.Ledger.Migrate
	return func(ctx context.Context) (*ledger.Engine, error) {
		if migrate {
			if _, _, err := ledger.Migrate(ctx, o); err != nil {
				return nil, err
			}
			migrate = false
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

// mostSpools is the number of processes that share a spool's directory.
const mostSpools = 16

// OpenSpool returns a function that opens the spool of the ledger; nil if there is none. A process that finds the
// directory in use takes the first free one in it. What an ended process left there is read when as many processes run
// again.
func OpenSpool(c config.Config) func() (*ledger.Spool, error) {
	dir := c.Ledger.Spool.Dir
	if dir == "" {
		return nil
	}
	return func() (s *ledger.Spool, err error) {
		for i := range mostSpools {
			own := dir
			if i > 0 {
				own = filepath.Join(dir, fmt.Sprintf("process-%d", i+1))
			}
			if s, err = ledger.OpenSpool(own, int64(c.Ledger.Spool.MaxBytes), withholds(c.Ledger)); !errors.Is(err, ledger.ErrSpoolInUse) {
				break
			}
		}
		return s, err
	}
}

func acquire(ctx context.Context, c config.Config, l *ledger.Ledger) (*ledger.Engine, error) {
	if err := CheckHidden(ctx, c, l); err != nil {
		return nil, err
	}
	return l.Acquire(ctx, c.EngineName())
}

// CheckHidden returns an error if the replay role can read the ledger.
func CheckHidden(ctx context.Context, c config.Config, l *ledger.Ledger) error {
	replay, err := pgx.ParseConfig(c.Shadow.DSN.Reveal())
	if err != nil {
		return fmt.Errorf("shadow.dsn is not a connection string")
	}
	return l.CheckHidden(ctx, replay.User)
}

// ErrNoLedger is returned by what needs a ledger.
var ErrNoLedger = errors.New("there is no ledger: ledger.dsn is memory, or neither ledger.dsn nor neighbours.target is set")

// MigrateLedgers creates the schema of each ledger of the engines or upgrades it, and reports the versions before and
// after.
func MigrateLedgers(ctx context.Context, c config.Config, report func(from, to int64)) error {
	for _, one := range Ledgers(c) {
		o, stored := LedgerOptions(one)
		if !stored {
			return ErrNoLedger
		}
		from, to, err := ledger.Migrate(ctx, o)
		if err != nil {
			return err
		}
		report(from, to)
	}
	return nil
}
