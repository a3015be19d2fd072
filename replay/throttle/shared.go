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

// Other is a server that clients use, by the key of the configuration that names it. It has either a connection string or an
// address alone.
type Other struct {
	Key              string
	DSN              string
	Network, Address string // of an engine to whose database there is no connection string
}

// identity tells one server from another: when it was started, and the identifier of its cluster, which a copy of the cluster's
// files shares. System is "" where the role may not call pg_control_system.
type identity struct {
	started time.Time
	port    string
	system  string
}

func (a identity) same(b identity) bool {
	return a.started.Equal(b.started) && a.port == b.port && (a.system == b.system || a.system == "" || b.system == "")
}

// identifyTimeout bounds each look at a server.
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

// Shared reports which of the others runs on the server of the shadow database; "" = none. Servers with connection strings are the
// same if they were started at the same moment, on the same port, with the same system identifier; those without if the address
// is the shadow's. The error says what could not be looked at, where none of those that could is the same.
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

// sameAddress reports whether a server's host and port are those of an address, by any of the host's IP addresses.
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
