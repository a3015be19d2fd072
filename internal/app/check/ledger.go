package check

import (
	"context"
	"errors"

	"github.com/dpwatch/dpwatch/config"
	"github.com/dpwatch/dpwatch/internal/app/setup"
	"github.com/dpwatch/dpwatch/internal/ledger"
	"github.com/dpwatch/dpwatch/internal/preflight"
	"github.com/dpwatch/dpwatch/internal/withheld"
)

// checkLedger checks that the ledger can be used and that the replay role cannot read it. It changes nothing.
func checkLedger(c config.Config) preflight.Task {
	return func(ctx context.Context) []preflight.Check {
		ctx, cancel := context.WithTimeout(ctx, setup.CheckTimeout)
		defer cancel()
		o, stored := setup.LedgerOptions(c)
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
		case errors.Is(err, ledger.ErrFormer) || errors.Is(err, ledger.ErrNewer):
			check.Status, check.Message, check.Fix = preflight.Fault, withheld.Reveal(err), "docs/upgrade.md says what to do"
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
	return setup.CheckHidden(ctx, c, l)
}

// checkSpool checks that the directory of the spool exists and can be written, or can be made.
func checkSpool(c config.Config) preflight.Task {
	return func(context.Context) []preflight.Check {
		dir := c.Ledger.Spool.Dir
		if dir == "" {
			return nil
		}
		check := preflight.Check{Name: "ledger.spool.dir", Object: dir, Status: preflight.OK, Message: "can be written"}
		exists, err := ledger.CheckSpool(dir)
		switch {
		case errors.Is(err, ledger.ErrSpoolReadable):
			check.Status, check.Message, check.Fix = preflight.Fault, err.Error(), "make it a directory of the user that runs dpwatch, with mode 700"
		case err != nil:
			check.Status, check.Message, check.Fix = preflight.Fault, err.Error(), "choose a directory that the user that runs dpwatch can make or write in, and run this check as that user"
		case !exists:
			check.Message = "does not exist: run makes it"
		}
		return []preflight.Check{check}
	}
}
