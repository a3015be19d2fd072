package replay

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/dpwatch/dpwatch/internal/outcome"
)

// Protocol selects the sub-protocol of trials (PostgreSQL manual, section 55.2).
type Protocol string

const (
	Captured Protocol = "captured" // as the client sent the query; "" means the same
	Extended Protocol = "extended" // Parse, Bind, Execute
	Simple   Protocol = "simple"   // Query
)

// simple reports whether trials of a statement are simple queries.
func (p *Player) simple(s Statement) bool {
	switch p.opt.Protocol {
	case Extended:
		return false
	case Simple:
		return true
	}
	return s.Simple
}

// simpleWindow bounds the bytes of queries in flight, if there are several. Socket buffers are never smaller, so server
// and client cannot both block on a write.
const simpleWindow = 16 << 10

// runSimple runs trials as simple queries: each is parsed and planned again, in a transaction of its own. Queries are
// sent before the server has answered the previous ones.
func (x *executor) runSimple(ctx context.Context, s *session, trials []trial) error {
	s.used += len(trials)
	for {
		conn := s.conn
		unwatch := context.AfterFunc(ctx, func() { _ = conn.Conn().SetDeadline(time.Unix(1, 0)) })
		left, err := x.simpleTrials(s, trials)
		if !unwatch() { // the session cannot be reused; cancel what runs on it
			late, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTimeout)
			defer cancel()
			_ = conn.CancelRequest(late)
			return ctx.Err()
		}
		if err != nil || len(left) == 0 {
			return err
		}
		if err := x.reopen(ctx, s); err != nil {
			return err
		}
		trials = left
	}
}

// simpleTrials runs trials and returns the remaining ones if a row too large to be read ended the session.
func (x *executor) simpleTrials(s *session, trials []trial) (left []trial, err error) {
	front := s.conn.Frontend()
	forgetNotices(s.conn)
	sent, flying := 0, 0
	text := func(i int) string { return x.stmt.Worlds[trials[i].world] }
	for i := range trials {
		if flying <= simpleWindow/2 {
			for sent < len(trials) && (flying == 0 || flying+len(text(sent)) <= simpleWindow) {
				front.SendQuery(&pgproto3.Query{String: text(sent)})
				flying += len(text(sent))
				sent++
			}
			if err := front.Flush(); err != nil {
				return nil, &transientError{op: "replay", err: err, lost: loses(err)}
			}
		}
		if *trials[i].into, err = x.simpleResult(s, trials[i].world); err != nil {
			return nil, err
		}
		x.player.said(trials[i].into, s.conn)
		if s.conn.IsClosed() {
			return trials[i+1:], nil
		}
		flying -= len(text(i))
	}
	return nil, nil
}

// simpleResult reads the outcome of one simple query, up to ReadyForQuery.
func (x *executor) simpleResult(s *session, world int) (o outcome.Outcome, err error) {
	var failed outcome.Outcome
	s.reader.begin()
	for {
		message, err := s.conn.ReceiveMessage(context.Background()) // runSimple watches the context
		if err != nil {
			return x.failure(s.conn, world, err)
		}
		switch m := message.(type) {
		case *pgproto3.RowDescription:
			s.reader.begin() // the last of several results counts
			s.reader.describe(len(m.Fields), func(i int) (string, uint32) { return string(m.Fields[i].Name), m.Fields[i].DataTypeOID })
		case *pgproto3.DataRow:
			if err := s.reader.row(m.Values, x.player.opt.MaxRows, x.player.opt.MaxBytes); err != nil {
				return o, &transientError{op: "replay", err: err}
			}
		case *pgproto3.ErrorResponse:
			if failed, err = x.failure(s.conn, world, pgconn.ErrorResponseToPgError(m)); err != nil {
				return o, err
			}
		case *pgproto3.CommandComplete, *pgproto3.EmptyQueryResponse, *pgproto3.NoticeResponse,
			*pgproto3.ParameterStatus, *pgproto3.NotificationResponse:
		case *pgproto3.ReadyForQuery:
			if failed.Failed() {
				return failed, nil
			}
			return s.reader.end(), nil
		default:
			return o, fmt.Errorf("replay: unexpected %T from the server in answer to a simple query", message)
		}
	}
}
