package audit

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/dpwatch/dpwatch/replay"
)

// Copies checks that the copies stay as they were when an audit began: its evidence must be of one pair of datasets.
type Copies struct {
	player  *replay.Player
	schemas []string
	epoch   string
	checked time.Time
}

// copiesEvery is how often the copies are checked while trials run. The last check, before the verdict, is the one that counts; the
// others end an audit early.
const copiesEvery = time.Second

// WatchCopies notes the present state of the copies in these schemas.
func WatchCopies(ctx context.Context, player *replay.Player, schemas []string) (*Copies, error) {
	epoch, err := player.Epoch(ctx, schemas)
	if err != nil {
		return nil, err
	}
	return &Copies{player: player, schemas: schemas, epoch: epoch, checked: time.Now()}, nil
}

var errReplaced = errors.New("were replaced while the audit ran: its trials are of two states of the data, and nothing is concluded; run the audit again")

// due checks the copies, unless the last check is less than copiesEvery ago.
func (c *Copies) due(ctx context.Context) error {
	if time.Since(c.checked) < copiesEvery {
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

// Explain checks the copies a last time and returns the error to report. Copies that were replaced explain whatever else went
// wrong, and are an error even where nothing did.
func (c *Copies) Explain(ctx context.Context, err error) error {
	if errors.Is(err, errReplaced) || ctx.Err() != nil {
		return err
	}
	if replaced := c.check(ctx); errors.Is(replaced, errReplaced) || err == nil {
		return replaced
	}
	return err
}
