package app

import (
	"context"
	"errors"

	"github.com/dpwatch/dpwatch/config"
	"github.com/dpwatch/dpwatch/internal/ledger"
	"github.com/dpwatch/dpwatch/internal/preflight"
)

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
