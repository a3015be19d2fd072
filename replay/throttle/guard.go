package throttle

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/dpwatch/dpwatch/internal/pg/connect"
	"github.com/dpwatch/dpwatch/internal/sqlstate"
)

// Guard holds replays while replication lags behind.
type Guard struct {
	DSN    string
	MaxLag time.Duration // on a standby its own lag, on a primary the greatest of its standbys; 0 = not watched
	Every  time.Duration // interval of measurements; 0 = every second
}

func (g Guard) on() bool { return g.MaxLag > 0 }

// Load is the last measurement of the guard.
type Load struct {
	LagSeconds    float64 `json:"lag_seconds"`
	MaxLagSeconds float64 `json:"max_lag_seconds"`
}

// loadQuery returns the number of standbys whose lag this role may not see, and the lag in seconds. On an idle primary
// a standby's last transaction is old without a lag.
const loadQuery = `SELECT
	(SELECT count(*) FROM pg_catalog.pg_stat_replication WHERE state IS NULL),
	coalesce(CASE
		WHEN NOT pg_catalog.pg_is_in_recovery() THEN
			(SELECT extract(epoch FROM max(replay_lag))::float8 FROM pg_catalog.pg_stat_replication)
		WHEN pg_catalog.pg_last_wal_receive_lsn() IS DISTINCT FROM pg_catalog.pg_last_wal_replay_lsn() THEN
			extract(epoch FROM pg_catalog.now() - pg_catalog.pg_last_xact_replay_timestamp())::float8
	END, 0)`

// Run watches the load until ctx is done. It returns at once if there is nothing to watch.
func (g *Gate) Run(ctx context.Context) {
	guard := g.opt.Guard
	if !guard.on() {
		return
	}
	if guard.Every <= 0 {
		guard.Every = time.Second
	}
	var conn *pgx.Conn
	defer func() {
		if conn != nil {
			_ = conn.Close(context.WithoutCancel(ctx))
		}
	}()
	tick := time.NewTicker(guard.Every)
	defer tick.Stop()
	for {
		hold, warning, load, err := guard.look(ctx, &conn)
		if err != nil {
			hold = "the load of the shadow database cannot be read: " + sqlstate.Withhold(err).Error()
		}
		g.mu.Lock()
		g.measured = load
		if g.load != hold {
			g.wake()
		}
		g.load, g.warning = hold, warning
		g.mu.Unlock()
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// look measures once; after an error the next look connects again.
func (guard Guard) look(ctx context.Context, conn **pgx.Conn) (hold, warning string, load *Load, err error) {
	ctx, cancel := context.WithTimeout(ctx, guard.Every+10*time.Second)
	defer cancel()
	if *conn == nil {
		if *conn, err = connect.Open(ctx, guard.DSN, connect.Options{Application: "dpwatch-guard"}); err != nil {
			*conn = nil
			return "", "", nil, err
		}
	}
	var hidden int
	var lag float64
	if err := (*conn).QueryRow(ctx, loadQuery).Scan(&hidden, &lag); err != nil {
		_ = (*conn).Close(ctx)
		*conn = nil
		return "", "", nil, err
	}
	load = &Load{LagSeconds: lag, MaxLagSeconds: guard.MaxLag.Seconds()}
	if hidden > 0 {
		warning = "the replay role cannot see the lag of the standbys: GRANT pg_read_all_stats TO it"
	}
	if took := time.Duration(lag * float64(time.Second)); took > guard.MaxLag {
		hold = fmt.Sprintf("replication is %s behind; audit.max_lag allows %s", took.Round(time.Millisecond), guard.MaxLag)
	}
	return hold, warning, load, nil
}
