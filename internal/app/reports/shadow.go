package reports

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/dpwatch/dpwatch/config"
	"github.com/dpwatch/dpwatch/internal/app/setup"
	"github.com/dpwatch/dpwatch/internal/pg/connect"
)

// shadowVersion returns the version of the shadow's server; "" if it cannot be read.
func shadowVersion(ctx context.Context, c config.Config) string {
	ctx, cancel := context.WithTimeout(ctx, setup.CheckTimeout)
	defer cancel()
	conn, err := pgx.Connect(ctx, c.Shadow.DSN.Reveal())
	if err != nil {
		return ""
	}
	defer conn.Close(ctx)
	version, err := connect.Value[string](ctx, conn, "SHOW server_version")
	if err != nil {
		return ""
	}
	return version
}
