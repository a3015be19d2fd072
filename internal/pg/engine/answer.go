package engine

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/dpwatch/dpwatch/internal/pg/connect"
	"github.com/dpwatch/dpwatch/internal/sqlstate"
)

// maxAnswer bounds the answer to a Question, in bytes.
const maxAnswer = 64 << 10

// Question asks engines for their version by a query. It is safe for concurrent use. The zero value with the exported
// fields set is ready for use.
type Question struct {
	DSNs     []string // of the engine, or of its instances
	SQL      string
	Timeout  time.Duration // to connect, and of the query
	Extended bool          // the query is sent with the extended protocol, which an engine may need

	mu       sync.Mutex // guards the fields below
	conns    []*pgconn.PgConn
	snapshot *Snapshot
}

// Read returns the present answers as a Snapshot: the same one as before if they are the same. Errors do not quote the
// connection strings and the query; the messages of the server are withheld.
func (q *Question) Read(ctx context.Context) (*Snapshot, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.conns == nil {
		q.conns = make([]*pgconn.PgConn, len(q.DSNs))
	}
	answers := make([]string, len(q.DSNs))
	for i := range q.DSNs {
		var err error
		if answers[i], err = q.ask(ctx, i); err != nil {
			q.close(i)
			return nil, fmt.Errorf("shadow.engine.version: %w", sqlstate.Withhold(err))
		}
	}
	if now := Answered(answers...); q.snapshot == nil || now.base != q.snapshot.base {
		q.snapshot = now
	}
	return q.snapshot, nil
}

// Close closes the sessions; a later Read opens others.
func (q *Question) Close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	for i := range q.conns {
		q.close(i)
	}
}

func (q *Question) close(i int) {
	if q.conns[i] != nil {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = q.conns[i].Close(ctx)
		q.conns[i] = nil
	}
}

var errAnswer = errors.New("the query must return one row, of at most 64 kB")

// ask returns the answer of one instance, as one text.
func (q *Question) ask(ctx context.Context, i int) (string, error) {
	if q.conns[i] == nil {
		cfg, err := connect.Parse(q.DSNs[i], connect.Options{Application: ApplicationName, Timeout: q.Timeout})
		if err != nil {
			return "", err
		}
		if q.conns[i], err = pgconn.ConnectConfig(ctx, &cfg.Config); err != nil {
			return "", err
		}
	}
	if q.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, q.Timeout)
		defer cancel()
	}
	var rows [][][]byte
	if q.Extended {
		result := q.conns[i].ExecParams(ctx, q.SQL, nil, nil, nil, nil).Read()
		if result.Err != nil {
			return "", result.Err
		}
		rows = result.Rows
	} else {
		results, err := q.conns[i].Exec(ctx, q.SQL).ReadAll()
		if err != nil {
			return "", err
		}
		if len(results) == 1 {
			rows = results[0].Rows
		}
	}
	if len(rows) != 1 {
		return "", errAnswer
	}
	text := ""
	for _, value := range rows[0] {
		text += fmt.Sprintf("%d %s\x00", len(value), value)
	}
	if len(text) > maxAnswer {
		return "", errAnswer
	}
	return text, nil
}
