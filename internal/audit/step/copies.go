package step

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/dpwatch/dpwatch/internal/audit/environment"
	"github.com/dpwatch/dpwatch/replay"
)

// Copies checks that the copies stay the same during an audit: its evidence must come from one pair of datasets.
type Copies struct {
	player  *replay.Player
	schemas []string
	version string
	checked time.Time
}

// copiesEvery is the interval of the checks while trials run. The last check of a step is decisive; the others only end
// it early.
const copiesEvery = time.Second

// WatchCopies records the present state of the copies in these schemas.
func WatchCopies(ctx context.Context, player *replay.Player, schemas []string) (*Copies, error) {
	version, err := player.Epoch(ctx, schemas)
	if err != nil {
		return nil, err
	}
	return &Copies{player: player, schemas: schemas, version: version, checked: time.Now()}, nil
}

// environment reads the copies.
func (c *Copies) environment(ctx context.Context) (*environment.Environment, error) {
	version, err := c.player.Epoch(ctx, c.schemas)
	if err != nil {
		return nil, err
	}
	c.checked = time.Now()
	return &environment.Environment{Copies: version, Twin: true}, nil
}

// stay reports whether the copies are known to be the same, or were less than copiesEvery ago.
func (c *Copies) stay(ctx context.Context) bool {
	if time.Since(c.checked) < copiesEvery {
		return true
	}
	now, err := c.environment(ctx)
	return err == nil && now.Copies == c.version
}

var errReplaced = errors.New("were replaced, or their rows changed, during the audit: its trials ran on two states of the data, so there is no verdict; run the audit again")

// Explain checks the copies a last time and returns the error to report. If the copies were replaced, that is the
// error, whatever else failed, and also if nothing failed.
func (c *Copies) Explain(ctx context.Context, err error) error {
	if c == nil || errors.Is(err, errReplaced) || ctx.Err() != nil {
		return err
	}
	replaced := errors.As(err, new(*ReplacedError))
	if !replaced {
		c.player.Look()
		now, failed := c.environment(ctx)
		if replaced = failed == nil && now.Copies != c.version; !replaced && err == nil {
			return failed
		}
	}
	if replaced {
		return fmt.Errorf("the copies in %s %w", strings.Join(c.schemas, ", "), errReplaced)
	}
	return err
}
