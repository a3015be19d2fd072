package trial

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/dpwatch/dpwatch/replay"
)

// Copies checks that the copies stay the same during an audit: its evidence must come from one pair of datasets.
type Copies struct {
	player  *replay.Player
	schemas []string
	epoch   string
	checked time.Time
}

// copiesEvery is the interval of the checks while trials run. The last check, before the verdict, is decisive; the
// others only end an audit early.
const copiesEvery = time.Second

// Look makes a Player that can read the rows of the copies, whatever counters say, do so when it is asked for their state
// the next time.
func Look(p Player) {
	if of, ok := p.(interface{ Look() }); ok {
		of.Look()
	}
}

// WatchCopies records the present state of the copies in these schemas.
func WatchCopies(ctx context.Context, player *replay.Player, schemas []string) (*Copies, error) {
	epoch, err := player.Epoch(ctx, schemas)
	if err != nil {
		return nil, err
	}
	return &Copies{player: player, schemas: schemas, epoch: epoch, checked: time.Now()}, nil
}

var errReplaced = errors.New("were replaced, or their rows changed, during the audit: its trials ran on two states of the data, so there is no verdict; run the audit again")

// due checks the copies unless the last check was less than copiesEvery ago.
func (c *Copies) due(ctx context.Context) error {
	if c == nil || time.Since(c.checked) < copiesEvery {
		return nil
	}
	return c.check(ctx)
}

func (c *Copies) check(ctx context.Context) error {
	epoch, err := c.player.Epoch(ctx, c.schemas)
	if err != nil {
		return err
	}
	if c.checked = time.Now(); epoch != c.epoch {
		return fmt.Errorf("the copies in %s %w", strings.Join(c.schemas, ", "), errReplaced)
	}
	return nil
}

// Explain checks the copies a last time and returns the error to report. If the copies were replaced, that is the
// error, whatever else failed, and also if nothing failed.
func (c *Copies) Explain(ctx context.Context, err error) error {
	if c == nil || errors.Is(err, errReplaced) || ctx.Err() != nil {
		return err
	}
	c.player.Look()
	if replaced := c.check(ctx); errors.Is(replaced, errReplaced) || err == nil {
		return replaced
	}
	return err
}
