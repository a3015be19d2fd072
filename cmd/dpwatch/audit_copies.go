package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/dpwatch/dpwatch/replay"
)

// copyWatch sees whether the copies stay as they were when an audit began: its evidence must be of one pair of datasets.
type copyWatch struct {
	player  *replay.Player
	schemas []string
	epoch   string
	looked  time.Time
}

// copiesEvery is how often the copies are looked at while trials run. The last look, before the verdict, is the one that
// counts; the others end an audit early.
const copiesEvery = time.Second

func watchCopies(ctx context.Context, player *replay.Player, schemas []string) (*copyWatch, error) {
	epoch, err := player.Epoch(ctx, schemas)
	if err != nil {
		return nil, err
	}
	return &copyWatch{player: player, schemas: schemas, epoch: epoch, looked: time.Now()}, nil
}

// errReplaced says that the copies are others than those that the audit began on.
var errReplaced = errors.New("were replaced while the audit ran: its trials are of two states of the data, and nothing is concluded; run the audit again")

// now looks at the copies, unless the last look is less than copiesEvery ago.
func (c *copyWatch) now(ctx context.Context) error {
	if time.Since(c.looked) < copiesEvery {
		return nil
	}
	return c.look(ctx)
}

func (c *copyWatch) look(ctx context.Context) error {
	epoch, err := c.player.Epoch(ctx, c.schemas)
	if err != nil {
		return err
	}
	if c.looked = time.Now(); epoch != c.epoch {
		return fmt.Errorf("the copies in %s %w", strings.Join(c.schemas, ", "), errReplaced)
	}
	return nil
}

// explain looks at the copies a last time. Copies that were replaced are the cause of whatever else went wrong, and a fault
// where nothing did.
func (c *copyWatch) explain(ctx context.Context, err error) error {
	if errors.Is(err, errReplaced) || ctx.Err() != nil {
		return err
	}
	if replaced := c.look(ctx); errors.Is(replaced, errReplaced) || err == nil {
		return replaced
	}
	return err
}
