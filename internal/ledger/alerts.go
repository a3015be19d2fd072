package ledger

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/dpwatch/dpwatch/internal/sqlstate"
)

// Alert is the stored form of an alert, in its latest state.
type Alert struct {
	ID       string     `json:"id"`
	Engine   string     `json:"engine"`
	Subject  string     `json:"-"`
	Kind     string     `json:"kind"`
	Severity string     `json:"severity"`
	Status   string     `json:"status"` // firing or resolved
	Title    string     `json:"title"`
	StartsAt time.Time  `json:"starts_at"`
	Updated  time.Time  `json:"updated_at"`
	EndsAt   *time.Time `json:"ends_at,omitempty"`
	Body     []byte     `json:"-"` // the message, as JSON
	Pending  int        `json:"pending_deliveries"`
	Failed   int        `json:"failed_deliveries"`
}

// The states of a delivery.
const (
	DeliveryPending   = "pending"
	DeliveryDelivered = "delivered"
	DeliveryFailed    = "failed"
)

// Delivery is a message to one receiver.
type Delivery struct {
	ID       int64      `json:"id"`
	Alert    string     `json:"alert"`
	Receiver string     `json:"receiver"`
	State    string     `json:"state"`
	Attempts int        `json:"attempts"`
	Error    string     `json:"error,omitempty"` // of the last attempt
	At       time.Time  `json:"at"`
	Ended    *time.Time `json:"ended_at,omitempty"`
	Body     []byte     `json:"-"`
}

// Alerts are the alerts of all engines and their messages.
type Alerts struct {
	pool  *pgxpool.Pool
	queue *queue
}

// Save stores the present state of an alert, and a message with that state to each receiver, which Deliver sends.
// The alert and its messages are stored together or not at all. It does nothing if the ledger has a later state of the
// alert.
func (s *Alerts) Save(ctx context.Context, a Alert, receivers []string) error {
	client, err := s.queue.inserter()
	if err != nil {
		return err
	}
	err = pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, `
			INSERT INTO alerts (id, engine, subject, kind, severity, status, title, starts_at, updated_at, ends_at, body) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)
			ON CONFLICT (id) DO UPDATE SET severity = excluded.severity, status = excluded.status, title = excluded.title, starts_at = excluded.starts_at,
			  updated_at = excluded.updated_at, ends_at = excluded.ends_at, body = excluded.body
			WHERE alerts.updated_at <= excluded.updated_at`,
			a.ID, a.Engine, a.Subject, a.Kind, a.Severity, a.Status, a.Title, a.StartsAt, a.Updated, a.EndsAt, string(a.Body))
		if err != nil || tag.RowsAffected() == 0 {
			return err
		}
		for _, name := range receivers {
			var id int64
			if err := tx.QueryRow(ctx, "INSERT INTO deliveries (alert, receiver, body) VALUES ($1, $2, $3) RETURNING id", a.ID, name, string(a.Body)).Scan(&id); err != nil {
				return err
			}
			if err := enqueue(ctx, tx, client, a.Engine, id); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("ledger: store an alert: %w", sqlstate.Withhold(err))
	}
	return nil
}

// Rejects reports whether an error of Alerts.Save is about the alert itself: the ledger stores others.
func Rejects(err error) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && (strings.HasPrefix(pg.Code, "22") || strings.HasPrefix(pg.Code, "23"))
}

const selectAlerts = `
	SELECT id, engine, subject, kind, severity, status, title, starts_at, updated_at, ends_at, body,
	  (SELECT count(*) FROM deliveries d WHERE d.alert = a.id AND d.state = 'pending')::int, (SELECT count(*) FROM deliveries d WHERE d.alert = a.id AND d.state = 'failed')::int
	FROM alerts a `

func (s *Alerts) read(ctx context.Context, sql string, args ...any) ([]Alert, error) {
	rows, err := s.pool.Query(ctx, selectAlerts+sql, args...)
	var all []Alert
	if err == nil {
		all, err = pgx.CollectRows(rows, pgx.RowToStructByPos[Alert])
	}
	if err != nil {
		return nil, fmt.Errorf("ledger: list alerts: %w", sqlstate.Withhold(err))
	}
	return all, nil
}

// Firing returns the alerts of an engine that have not ended.
func (s *Alerts) Firing(ctx context.Context, engine string) ([]Alert, error) {
	return s.read(ctx, "WHERE engine = $1 AND status = 'firing' ORDER BY starts_at, id", engine)
}

// Latest returns the latest alerts of all engines, at most the given number, those that changed last first.
func (s *Alerts) Latest(ctx context.Context, most int) ([]Alert, error) {
	return s.read(ctx, "ORDER BY updated_at DESC, id LIMIT $1", most)
}

// ErrNoAlert: no alert, or several, have an ID that begins so.
var ErrNoAlert = errors.New("no alert, or more than one, has an ID that begins so")

// Find returns the alert whose ID begins with a text, and its deliveries. It returns ErrNoAlert unless there is
// exactly one.
func (s *Alerts) Find(ctx context.Context, id string) (Alert, []Delivery, error) {
	all, err := s.read(ctx, "WHERE starts_with(id, $1) LIMIT 2", id)
	if err == nil && (len(all) != 1 || id == "") {
		err = ErrNoAlert
	}
	if err != nil {
		return Alert{}, nil, err
	}
	rows, err := s.pool.Query(ctx, "SELECT id, alert, receiver, state, attempts, error, at, ended_at, body FROM deliveries WHERE alert = $1 ORDER BY id", all[0].ID)
	var deliveries []Delivery
	if err == nil {
		deliveries, err = pgx.CollectRows(rows, pgx.RowToStructByPos[Delivery])
	}
	if err != nil {
		return Alert{}, nil, fmt.Errorf("ledger: list deliveries: %w", sqlstate.Withhold(err))
	}
	return all[0], deliveries, nil
}

// Retry sends the failed messages of an alert again, and returns how many there are.
func (s *Alerts) Retry(ctx context.Context, a Alert) (n int, err error) {
	client, err := s.queue.inserter()
	if err != nil {
		return 0, err
	}
	err = pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, "UPDATE deliveries SET state = 'pending', attempts = 0, at = now(), ended_at = NULL WHERE alert = $1 AND state = 'failed' RETURNING id", a.ID)
		if err != nil {
			return err
		}
		ids, err := pgx.CollectRows(rows, pgx.RowTo[int64])
		if err != nil {
			return err
		}
		n = len(ids)
		return enqueue(ctx, tx, client, a.Engine, ids...)
	})
	if err != nil {
		return 0, fmt.Errorf("ledger: retry deliveries: %w", sqlstate.Withhold(err))
	}
	return n, nil
}

// Undelivered counts the messages to one receiver that have not arrived.
type Undelivered struct {
	Receiver string        `json:"receiver"`
	Pending  int           `json:"pending"`
	Failed   int           `json:"failed"`     // every attempt failed
	Oldest   time.Duration `json:"pending_ns"` // age of the oldest pending message; 0 = none is pending
}

// Undelivered returns the messages about an engine's alerts that have not arrived, by receiver.
func (s *Alerts) Undelivered(ctx context.Context, engine string) ([]Undelivered, error) {
	rows, err := s.pool.Query(ctx, `
		SELECT d.receiver, count(*) FILTER (WHERE d.state = 'pending')::int, count(*) FILTER (WHERE d.state = 'failed')::int,
		  coalesce(extract(epoch FROM now() - min(d.at) FILTER (WHERE d.state = 'pending')), 0)::float8
		FROM deliveries d JOIN alerts a ON a.id = d.alert WHERE a.engine = $1 AND d.state <> 'delivered' GROUP BY 1 ORDER BY 1`, engine)
	var all []Undelivered
	if err == nil {
		all, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (u Undelivered, err error) {
			var seconds float64
			err = row.Scan(&u.Receiver, &u.Pending, &u.Failed, &seconds)
			u.Oldest = time.Duration(seconds * float64(time.Second))
			return u, err
		})
	}
	if err != nil {
		return nil, fmt.Errorf("ledger: count messages that have not arrived: %w", sqlstate.Withhold(err))
	}
	return all, nil
}

// Prune removes the alerts of an engine that ended before a time, apart from those with pending messages.
func (s *Alerts) Prune(ctx context.Context, engine string, before time.Time) error {
	_, err := s.pool.Exec(ctx, `DELETE FROM alerts a WHERE engine = $1 AND status = 'resolved' AND updated_at < $2
		AND NOT EXISTS (SELECT FROM deliveries d WHERE d.alert = a.id AND d.state = 'pending')`, engine, before)
	if err != nil {
		return fmt.Errorf("ledger: remove old alerts: %w", sqlstate.Withhold(err))
	}
	return nil
}
