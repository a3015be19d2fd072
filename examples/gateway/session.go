package main

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"net"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgproto3/v2"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	pg_query "github.com/pganalyze/pg_query_go/v5"
)

// float8 is the type of every answer.
const float8 = 701

// session is the session of one client.
type session struct {
	engine
	backend    *pgproto3.Backend
	source     *pgx.Conn
	timeout    time.Duration // statement_timeout; 0 = none
	statements map[string]string
	portal     pgproto3.Bind // the last portal bound
	failed     bool          // an error was reported: messages up to Sync are skipped
}

// serve serves one client until it disconnects.
func (e engine) serve(ctx context.Context, conn net.Conn) {
	defer conn.Close() //nolint:errcheck // the session is over
	defer func() {     // the decoder is known to panic on some malformed messages
		if r := recover(); r != nil {
			fmt.Fprintln(os.Stderr, "gateway: session:", r)
		}
	}()
	s := &session{engine: e, backend: pgproto3.NewBackend(pgproto3.NewChunkReader(conn), conn), statements: map[string]string{}}
	if err := s.startup(ctx, conn); err != nil {
		return
	}
	defer s.source.Close(ctx) //nolint:errcheck // the session is over
	for {
		message, err := s.backend.Receive()
		if err != nil {
			return
		}
		if _, over := message.(*pgproto3.Terminate); over {
			return
		}
		if err := s.take(ctx, message); err != nil {
			return
		}
	}
}

// startup refuses encryption, accepts every user, and opens a session with the source.
func (s *session) startup(ctx context.Context, conn net.Conn) error {
	for {
		message, err := s.backend.ReceiveStartupMessage()
		if err != nil {
			return err
		}
		switch message.(type) {
		case *pgproto3.SSLRequest, *pgproto3.GSSEncRequest:
			if _, err := conn.Write([]byte{'N'}); err != nil {
				return err
			}
			continue
		case *pgproto3.StartupMessage:
		default:
			return errors.New("not a session")
		}
		if s.source, err = pgx.Connect(ctx, s.engine.source); err != nil {
			_ = s.backend.Send(&pgproto3.ErrorResponse{Severity: "FATAL", Code: "08001", Message: "the source cannot be reached"})
			return err
		}
		return s.send(&pgproto3.AuthenticationOk{}, &pgproto3.ParameterStatus{Name: "server_version", Value: "15.0 (example gateway)"},
			&pgproto3.ParameterStatus{Name: "client_encoding", Value: "UTF8"},
			&pgproto3.ParameterStatus{Name: "standard_conforming_strings", Value: "on"}, &pgproto3.ReadyForQuery{TxStatus: 'I'})
	}
}

func (s *session) send(messages ...pgproto3.BackendMessage) error {
	for _, m := range messages {
		if err := s.backend.Send(m); err != nil {
			return err
		}
	}
	return nil
}

// take answers one message. A returned error ends the session; errors of the statement are sent to the client.
func (s *session) take(ctx context.Context, message pgproto3.FrontendMessage) error {
	switch m := message.(type) {
	case *pgproto3.Query:
		if err := s.execute(ctx, m.String, nil, true); err != nil {
			return err
		}
		s.failed = false
		return s.send(&pgproto3.ReadyForQuery{TxStatus: 'I'})
	case *pgproto3.Sync:
		s.failed = false
		return s.send(&pgproto3.ReadyForQuery{TxStatus: 'I'})
	}
	if s.failed {
		return nil
	}
	switch m := message.(type) {
	case *pgproto3.Parse:
		s.statements[m.Name] = m.Query
		return s.send(&pgproto3.ParseComplete{})
	case *pgproto3.Bind:
		s.portal = pgproto3.Bind{PreparedStatement: m.PreparedStatement, ResultFormatCodes: append([]int16(nil), m.ResultFormatCodes...)}
		return s.send(&pgproto3.BindComplete{})
	case *pgproto3.Describe:
		return s.describe(m)
	case *pgproto3.Execute:
		return s.execute(ctx, s.statements[s.portal.PreparedStatement], s.portal.ResultFormatCodes, false)
	case *pgproto3.Close:
		return s.send(&pgproto3.CloseComplete{})
	case *pgproto3.Flush:
		return nil
	}
	return s.refuse(fmt.Errorf("this engine does not know %T", message))
}

func (s *session) describe(m *pgproto3.Describe) error {
	name, formats := s.portal.PreparedStatement, s.portal.ResultFormatCodes
	if m.ObjectType == 'S' {
		name, formats = m.Name, nil
		if err := s.send(&pgproto3.ParameterDescription{}); err != nil {
			return err
		}
	}
	if _, set := setting(s.statements[name]); set {
		return s.send(&pgproto3.NoData{})
	}
	q, err := parse(s.statements[name])
	if err != nil {
		return s.refuse(err)
	}
	return s.send(head(q, formats))
}

func head(q query, formats []int16) *pgproto3.RowDescription {
	d := &pgproto3.RowDescription{}
	for i, name := range q.columns {
		d.Fields = append(d.Fields, pgproto3.FieldDescription{Name: []byte(name), DataTypeOID: float8, DataTypeSize: 8, TypeModifier: -1, Format: format(formats, i)})
	}
	return d
}

// format returns the format code of one column, as in Bind: none, one for all, or one each.
func format(codes []int16, i int) int16 {
	switch {
	case len(codes) == 1:
		return codes[0]
	case i < len(codes):
		return codes[i]
	}
	return 0
}

// execute runs one statement; with described, the row description precedes the row.
func (s *session) execute(ctx context.Context, sql string, formats []int16, described bool) error {
	if strings.TrimSpace(sql) == "" {
		return s.send(&pgproto3.EmptyQueryResponse{})
	}
	if set, ok := setting(sql); ok {
		return s.set(set)
	}
	q, err := parse(sql)
	if err != nil {
		return s.refuse(err)
	}
	if s.timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, s.timeout)
		defer cancel()
	}
	values, err := s.answer(ctx, s.source, q)
	if err != nil {
		told := s.refuse(err)
		if s.source.IsClosed() { // by a timeout; this session ends with it
			return errors.Join(err, told)
		}
		return told
	}
	if described {
		if err := s.send(head(q, formats)); err != nil {
			return err
		}
	}
	row := &pgproto3.DataRow{}
	for i, v := range values {
		cell := strconv.AppendFloat(nil, v, 'g', -1, 64)
		if format(formats, i) == 1 {
			cell = binary.BigEndian.AppendUint64(nil, math.Float64bits(v))
		}
		row.Values = append(row.Values, cell)
	}
	return s.send(row, &pgproto3.CommandComplete{CommandTag: []byte("SELECT 1")})
}

// setting returns the SET statement in sql, if it is one.
func setting(sql string) (*pg_query.VariableSetStmt, bool) {
	tree, err := pg_query.Parse(sql)
	if err != nil || len(tree.Stmts) != 1 {
		return nil, false
	}
	set := tree.Stmts[0].Stmt.GetVariableSetStmt()
	return set, set != nil
}

// set supports only statement_timeout, in milliseconds.
func (s *session) set(set *pg_query.VariableSetStmt) error {
	if set.Name != "statement_timeout" || len(set.Args) != 1 {
		return s.refuse(fmt.Errorf("this engine has no setting %q", set.Name))
	}
	s.timeout = time.Duration(set.Args[0].GetAConst().GetIval().GetIval()) * time.Millisecond
	return s.send(&pgproto3.CommandComplete{CommandTag: []byte("SET")})
}

// refuse sends an error of the statement. The source's message can contain values and is not passed on.
func (s *session) refuse(err error) error {
	s.failed = true
	r := &pgproto3.ErrorResponse{Severity: "ERROR", Code: "0A000", Message: err.Error()}
	var pg *pgconn.PgError
	switch {
	case errors.As(err, &pg):
		r.Code, r.Message = pg.Code, "the source refuses the statement"
	case errors.Is(err, context.DeadlineExceeded):
		r.Code, r.Message = "57014", "statement timeout"
	}
	if s.source.IsClosed() {
		r.Severity = "FATAL"
	}
	return s.send(r)
}
