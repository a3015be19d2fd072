package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgproto3/v2"
	"github.com/jackc/pgx/v5/pgtype"
)

// oids are the types of columns.
var oids = map[string]uint32{"bool": pgtype.BoolOID, "int8": pgtype.Int8OID, "float8": pgtype.Float8OID, "text": pgtype.TextOID}

var parameter = regexp.MustCompile(`\$(\d+)`)

// running has the sessions by their key, for requests to cancel a statement.
var running sync.Map

// portal is a statement with its parameters. Describe runs it, because its columns are known then.
type portal struct {
	request
	formats []int16 // of the columns
	answer  *answer // nil until it has run
}

// session is the session of one client.
type session struct {
	backend    *pgproto3.Backend
	engine     pool
	types      *pgtype.Map
	timeout    time.Duration // statement_timeout; 0 = none
	statements map[string]pgproto3.Parse
	portal     portal // the last one bound
	failed     bool   // an error was reported: messages up to Sync are skipped
	status     byte   // of the transaction, as in ReadyForQuery. A transaction has no effect
	mutex      sync.Mutex
	cancel     context.CancelFunc // of the statement that runs
}

// serve serves one client until it disconnects.
func serve(ctx context.Context, conn net.Conn, engine pool) {
	defer conn.Close() //nolint:errcheck // the session is over
	defer func() {     // the decoder is known to panic on some malformed messages
		if r := recover(); r != nil {
			fmt.Fprintln(os.Stderr, "gateway: session:", r)
		}
	}()
	s := &session{
		backend: pgproto3.NewBackend(pgproto3.NewChunkReader(conn), conn), engine: engine, types: pgtype.NewMap(),
		statements: map[string]pgproto3.Parse{}, status: 'I', cancel: func() {},
	}
	key := rand.Uint64()
	if s.startup(conn, key) != nil {
		return
	}
	running.Store(key, s)
	defer running.Delete(key)
	for {
		message, err := s.backend.Receive()
		if _, over := message.(*pgproto3.Terminate); over || err != nil || s.take(ctx, message) != nil {
			return
		}
	}
}

// startup refuses encryption and accepts every user.
func (s *session) startup(conn net.Conn, key uint64) error {
	message, err := s.backend.ReceiveStartupMessage()
	switch m := message.(type) {
	case *pgproto3.SSLRequest, *pgproto3.GSSEncRequest:
		if _, err := conn.Write([]byte{'N'}); err != nil {
			return err
		}
		return s.startup(conn, key)
	case *pgproto3.CancelRequest:
		if other, ok := running.Load(uint64(m.ProcessID)<<32 | uint64(m.SecretKey)); ok {
			other.(*session).interrupt(nil)
		}
	case *pgproto3.StartupMessage:
		messages := []pgproto3.BackendMessage{&pgproto3.AuthenticationOk{}}
		for name, value := range settings {
			messages = append(messages, &pgproto3.ParameterStatus{Name: name, Value: value})
		}
		return s.send(append(messages, &pgproto3.BackendKeyData{ProcessID: uint32(key >> 32), SecretKey: uint32(key)}, &pgproto3.ReadyForQuery{TxStatus: s.status})...)
	}
	return errors.Join(err, errors.New("not a session"))
}

// interrupt cancels the statement that runs, and sets the function that cancels the next one.
func (s *session) interrupt(next context.CancelFunc) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.cancel()
	if next != nil {
		s.cancel = next
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
		if err := s.execute(ctx, &portal{request: request{SQL: m.String}}, true); err != nil {
			return err
		}
		s.failed = false
		return s.send(&pgproto3.ReadyForQuery{TxStatus: s.status})
	case *pgproto3.Sync:
		s.failed = false
		return s.send(&pgproto3.ReadyForQuery{TxStatus: s.status})
	}
	if s.failed {
		return nil
	}
	switch m := message.(type) {
	case *pgproto3.Parse:
		for _, match := range parameter.FindAllStringSubmatch(m.Query, -1) {
			for n, _ := strconv.Atoi(match[1]); len(m.ParameterOIDs) < min(n, 1000); {
				m.ParameterOIDs = append(m.ParameterOIDs, pgtype.TextOID) // unless the client says another type
			}
		}
		s.statements[m.Name] = *m
		return s.send(&pgproto3.ParseComplete{})
	case *pgproto3.Bind:
		return s.bind(m)
	case *pgproto3.Describe:
		p := &s.portal
		if m.ObjectType == 'S' {
			p = &portal{request: request{SQL: s.statements[m.Name].Query, Describe: true}}
			if err := s.send(&pgproto3.ParameterDescription{ParameterOIDs: s.statements[m.Name].ParameterOIDs}); err != nil {
				return err
			}
		}
		if err := s.run(ctx, p); err != nil {
			return s.refuse(err)
		}
		return s.send(p.head())
	case *pgproto3.Execute:
		return s.execute(ctx, &s.portal, false)
	case *pgproto3.Close:
		return s.send(&pgproto3.CloseComplete{})
	case *pgproto3.Flush:
		return nil
	}
	return s.refuse(&failure{"0A000", fmt.Sprintf("this engine does not support %T", message)})
}

// bind makes texts of the parameters.
func (s *session) bind(m *pgproto3.Bind) error {
	st := s.statements[m.PreparedStatement]
	s.portal = portal{request: request{SQL: st.Query}, formats: m.ResultFormatCodes}
	for i, value := range m.Parameters {
		oid := uint32(pgtype.TextOID)
		if i < len(st.ParameterOIDs) && format(m.ParameterFormatCodes, i) == pgtype.BinaryFormatCode {
			oid = st.ParameterOIDs[i]
		}
		var text *string
		if err := s.types.Scan(oid, format(m.ParameterFormatCodes, i), value, &text); err != nil {
			return s.refuse(&failure{"0A000", fmt.Sprintf("parameter $%d: %v", i+1, err)})
		}
		s.portal.Parameters = append(s.portal.Parameters, text)
	}
	return s.send(&pgproto3.BindComplete{})
}

// head is the description of the columns.
func (p *portal) head() pgproto3.BackendMessage {
	if len(p.answer.Columns) == 0 {
		return &pgproto3.NoData{}
	}
	d := &pgproto3.RowDescription{}
	for i, c := range p.answer.Columns {
		d.Fields = append(d.Fields, pgproto3.FieldDescription{Name: []byte(c.Name), DataTypeOID: oids[c.Type], DataTypeSize: -1, TypeModifier: -1, Format: format(p.formats, i)})
	}
	return d
}

// format returns the format code of one column or parameter, as in Bind: none, one for all, or one each.
func format(codes []int16, i int) int16 {
	if len(codes) == 1 {
		return codes[0]
	}
	return append(codes, make([]int16, i+1)...)[i]
}

// run answers a portal that has not run.
func (s *session) run(ctx context.Context, p *portal) error {
	if p.answer != nil {
		return nil
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if s.timeout > 0 {
		ctx, cancel = context.WithTimeout(ctx, s.timeout)
		defer cancel()
	}
	s.interrupt(cancel)
	a, local, err := s.local(p.request)
	if !local && err == nil {
		a, err = s.engine.answer(ctx, p.request)
	}
	p.answer = &a
	return err
}

// execute runs one statement; with described, the row description precedes the rows.
func (s *session) execute(ctx context.Context, p *portal, described bool) error {
	if strings.TrimSpace(p.SQL) == "" {
		return s.send(&pgproto3.EmptyQueryResponse{})
	}
	if err := s.run(ctx, p); err != nil {
		return s.refuse(err)
	}
	var messages []pgproto3.BackendMessage
	if described && len(p.answer.Columns) > 0 {
		messages = append(messages, p.head())
	}
	for _, values := range p.answer.Rows {
		row, err := s.row(p, append(values, make([]any, len(p.answer.Columns))...))
		if err != nil {
			return s.refuse(err)
		}
		messages = append(messages, row)
	}
	tag := p.answer.tag
	if tag == "" {
		tag = fmt.Sprintf("SELECT %d", len(p.answer.Rows))
	}
	return s.send(append(messages, &pgproto3.CommandComplete{CommandTag: []byte(tag)})...)
}

// row encodes a row as the client wants it.
func (s *session) row(p *portal, values []any) (*pgproto3.DataRow, error) {
	row := &pgproto3.DataRow{}
	for i, c := range p.answer.Columns {
		value := values[i]
		switch number, ok := value.(json.Number); {
		case ok && c.Type == "float8":
			value, _ = number.Float64()
		case ok && c.Type == "int8":
			value, _ = number.Int64()
		case ok:
			value = number.String()
		}
		cell, err := s.types.Encode(oids[c.Type], format(p.formats, i), value, []byte{})
		if _, text := value.(string); err != nil || text && c.Type != "text" {
			return nil, &failure{"58000", fmt.Sprintf("column %q: the engine answered a value that is no %s", c.Name, c.Type)}
		}
		row.Values = append(row.Values, cell)
	}
	return row, nil
}

// refuse sends an error of the statement.
func (s *session) refuse(err error) error {
	s.failed = true
	if s.status == 'T' {
		s.status = 'E'
	}
	r := &pgproto3.ErrorResponse{Severity: "ERROR", Code: "57014", Message: "canceled by the client"}
	if f := (*failure)(nil); errors.As(err, &f) {
		r.Code, r.Message = f.code, f.message
	} else if errors.Is(err, context.DeadlineExceeded) {
		r.Message = "statement timeout"
	}
	return s.send(r)
}
