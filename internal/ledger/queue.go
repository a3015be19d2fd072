package ledger

import (
	"context"
	"errors"
	"log/slog"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"
	"go.uber.org/zap"

	"github.com/dpwatch/dpwatch/internal/sqlstate"
)

// migrateQueue creates River's tables in the ledger's schema, or upgrades them.
func migrateQueue(ctx context.Context, c *pgxpool.Config, schema string) error {
	c = c.Copy()
	c.MaxConns = 2
	pool, err := pgxpool.NewWithConfig(ctx, c)
	if err != nil {
		return err
	}
	defer pool.Close()
	m, err := rivermigrate.New(riverpgxv5.New(pool), &rivermigrate.Config{Schema: schema, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	_, err = m.Migrate(ctx, rivermigrate.DirectionUp, nil)
	return err
}

// inserter returns a client of the queue that only inserts jobs.
func (l *Ledger) inserter() (*river.Client[pgx.Tx], error) {
	return river.NewClient(riverpgxv5.New(l.pool), &river.Config{Schema: l.schema, Logger: slog.New(slog.DiscardHandler)})
}

// queueOf returns the queue of one worker. A turn is given to one worker that has a free slot, so each has its own
// queue.
func queueOf(worker string) string { return "worker_" + worker }

// workerOf is the inverse of queueOf.
func workerOf(queue string) string { return strings.TrimPrefix(queue, "worker_") }

// riverLog returns a logger for River that writes warnings and errors without the server's messages.
func riverLog(log *zap.Logger) *slog.Logger { return slog.New(&riverHandler{log}) }

type riverHandler struct{ log *zap.Logger }

func (h *riverHandler) Enabled(_ context.Context, level slog.Level) bool {
	return level >= slog.LevelWarn
}

func (h *riverHandler) Handle(_ context.Context, r slog.Record) error {
	var fields []zap.Field
	r.Attrs(func(a slog.Attr) bool {
		if err, ok := a.Value.Any().(error); ok {
			if errors.Is(err, context.Canceled) {
				return true
			}
			fields = append(fields, zap.Error(sqlstate.Withhold(err)))
		}
		return true
	})
	h.log.Warn("job queue", append(fields, zap.String("message", r.Message))...)
	return nil
}

func (h *riverHandler) WithAttrs([]slog.Attr) slog.Handler { return h }

func (h *riverHandler) WithGroup(string) slog.Handler { return h }
