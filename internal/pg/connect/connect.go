// Package connect opens the sessions in which dpwatch queries its databases. (Replays have their own, with the settings
// of the client whose query is replayed.)
package connect

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// DefaultTimeout bounds an attempt to connect unless the connection string or Options set another limit.
const DefaultTimeout = 10 * time.Second

// ErrSyntax reports that a text is not a connection string. It never quotes the string, which may hold a password.
var ErrSyntax = errors.New("is not a connection string: write postgres://user@host:port/database or key=value pairs")

// Options are the settings of a session.
type Options struct {
	Application string        // application_name
	Timeout     time.Duration // to connect; 0 = that of the connection string, or DefaultTimeout
	ReadOnly    bool          // default_transaction_read_only
}

// Parse reads a connection string and applies the options. Names and rows come as UTF8, whatever the database's
// encoding is. The only error is ErrSyntax.
func Parse(dsn string, o Options) (*pgx.ConnConfig, error) {
	cfg, err := pgx.ParseConfig(dsn)
	if err != nil {
		return nil, ErrSyntax
	}
	DetectLoss(&cfg.Config)
	cfg.RuntimeParams["application_name"] = o.Application
	cfg.RuntimeParams["client_encoding"] = "UTF8"
	if o.ReadOnly {
		cfg.RuntimeParams["default_transaction_read_only"] = "on"
	}
	switch {
	case o.Timeout > 0:
		cfg.ConnectTimeout = o.Timeout
	case cfg.ConnectTimeout == 0:
		cfg.ConnectTimeout = DefaultTimeout
	}
	return cfg, nil
}

// Open opens a session. Errors of the network or the server quote neither the string nor a password.
func Open(ctx context.Context, dsn string, o Options) (*pgx.Conn, error) {
	cfg, err := Parse(dsn, o)
	if err != nil {
		return nil, err
	}
	return pgx.ConnectConfig(ctx, cfg)
}

// Where names the database of a configuration, for messages.
func Where(cfg *pgx.ConnConfig) string {
	return fmt.Sprintf("database %s at %s:%d as %s", cfg.Database, cfg.Host, cfg.Port, cfg.User)
}
