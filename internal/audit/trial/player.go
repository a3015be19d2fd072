package trial

import (
	"context"
	"iter"
	"time"

	"github.com/dpwatch/dpwatch/replay"
)

// Player runs trials: Replays of a replay.Player, or a simulation.
type Player interface {
	Check(ctx context.Context, d0 string, d1, tables []string) (warnings []string, err error)
	Epoch(ctx context.Context, schemas []string) (string, error)
	TwinFault(ctx context.Context, d0 string) (fault string, guard bool, err error)
	Start(s replay.Statement, seed uint64) (Trials, error)
}

// Trials are the trials of a statement; see replay.Run.
type Trials interface {
	Reads(ctx context.Context) (replay.Reads, error)
	Stream(ctx context.Context, n int) iter.Seq2[replay.Batch, error]
	Choose(c replay.Choice)
	Time(ctx context.Context, world int, add func(d0, other time.Duration) bool) error
	Rest() bool
	Close()
}

// Replays returns a Player that replays on databases.
func Replays(p *replay.Player) Player { return replays{p} }

type replays struct{ *replay.Player }

func (r replays) Start(s replay.Statement, seed uint64) (Trials, error) {
	run, err := r.Player.Start(s, seed)
	if err != nil {
		return nil, err
	}
	return run, nil
}
