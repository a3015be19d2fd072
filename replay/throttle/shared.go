package throttle

import (
	"context"
	"fmt"
	"net"
	"path"
	"slices"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/dpwatch/dpwatch/internal/pg/connect"
)

// Other is a server that clients use, with the configuration key that names it. It has either a connection string or
// only an address.
type Other struct {
	Key              string
	DSN              string
	Network, Address string // of an engine whose database has no connection string in the configuration
}

// identity identifies a server: its start time, its port, and the system identifier of its cluster, which a file-level
// copy of the cluster shares. system is "" if the role may not call pg_control_system.
type identity struct {
	started time.Time
	port    string
	system  string
}

func (a identity) same(b identity) bool {
	return a.started.Equal(b.started) && a.port == b.port && (a.system == b.system || a.system == "" || b.system == "")
}

// identifyTimeout bounds each connection to a server.
const identifyTimeout = 10 * time.Second

func identify(ctx context.Context, dsn string) (id identity, err error) {
	ctx, cancel := context.WithTimeout(ctx, identifyTimeout)
	defer cancel()
	conn, err := connect.Open(ctx, dsn, connect.Options{Application: "dpwatch-guard"})
	if err != nil {
		return id, err
	}
	defer conn.Close(context.WithoutCancel(ctx)) //nolint:errcheck // only read
	err = conn.QueryRow(ctx, "SELECT pg_catalog.pg_postmaster_start_time(), pg_catalog.current_setting('port')").Scan(&id.started, &id.port)
	if err != nil {
		return id, err
	}
	_ = conn.QueryRow(ctx, "SELECT system_identifier::text FROM pg_catalog.pg_control_system()").Scan(&id.system)
	return id, nil
}

// Shared returns the key of the other server that is the server of the shadow database; "" = none. Servers with
// connection strings are the same if they have the same start time, port and system identifier; those without, if the
// address is the shadow's. If none of the servers that could be checked is the same, the error names what could not be
// checked.
func Shared(ctx context.Context, shadow string, others []Other) (key string, err error) {
	cfg, err := pgx.ParseConfig(shadow)
	if err != nil {
		return "", fmt.Errorf("shadow.dsn is not a connection string")
	}
	for _, o := range others {
		if o.DSN == "" && sameAddress(ctx, cfg.Host, cfg.Port, o.Network, o.Address) {
			return o.Key, nil
		}
	}
	var own *identity
	for _, o := range others {
		if o.DSN == "" {
			continue
		}
		if own == nil {
			id, idErr := identify(ctx, shadow)
			if idErr != nil {
				return "", fmt.Errorf("the server of shadow.dsn: %w", idErr)
			}
			own = &id
		}
		id, idErr := identify(ctx, o.DSN)
		switch {
		case idErr != nil:
			err = fmt.Errorf("the server of %s: %w", o.Key, idErr)
		case id.same(*own):
			return o.Key, nil
		}
	}
	return "", err
}

// sameAddress reports whether host and port, with any of the host's IP addresses, are those of an address.
func sameAddress(ctx context.Context, host string, port uint16, network, address string) bool {
	if network == "unix" {
		return path.Clean(address) == path.Join(host, ".s.PGSQL."+strconv.Itoa(int(port)))
	}
	otherHost, otherPort, err := net.SplitHostPort(address)
	if err != nil || otherPort != strconv.Itoa(int(port)) || path.IsAbs(host) {
		return false
	}
	if host == otherHost {
		return true
	}
	ctx, cancel := context.WithTimeout(ctx, identifyTimeout)
	defer cancel()
	a, _ := net.DefaultResolver.LookupHost(ctx, host)
	b, _ := net.DefaultResolver.LookupHost(ctx, otherHost)
	return slices.ContainsFunc(a, func(ip string) bool { return slices.Contains(b, ip) })
}
