package connect

import (
	"net"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// A session whose server's host is silent for lossAfter fails, however long a statement may run: the host's kernel
// answers probes meanwhile. Without it, a session over a link that was cut waits for a quarter of an hour.
const (
	lossAfter  = 30 * time.Second
	probeEvery = 5 * time.Second
)

// DetectLoss makes the sessions of a configuration fail when their server's host cannot be reached any more.
func DetectLoss(cfg *pgconn.Config) {
	d := net.Dialer{
		KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: probeEvery, Interval: probeEvery, Count: int(lossAfter/probeEvery) - 1},
		Control:         limitUnacknowledged,
	}
	cfg.DialFunc = d.DialContext
}
