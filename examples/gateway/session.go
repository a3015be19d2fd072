package main

import (
	"cmp"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"net"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgproto3"
	"github.com/jackc/pgx/v5/pgtype"
	pg_query "github.com/pganalyze/pg_query_go/v5"
)

// running has for each session, by its key, the function that cancels its statement.
var running sync.Map

// portal is a statement: prepared, or with its parameters. To describe the latter is to run it.
type portal struct {
	sql, words string   // as the client sent it; without comments and with one blank between words
	describe   bool     // prepared: only the columns are wanted
	types      []uint32 // of the parameters; 0 = not known
	parameters []*string
	formats    []int16 // of the columns
	answer     *answer // what the client does not have of it; nil = it has not run
}

// session is the session of one client.
type session struct {
	*pgproto3.Backend
	key               pgproto3.BackendKeyData
	engine            pool
	types             *pgtype.Map
	portals           map[string]*portal // the key is S and the name of a prepared statement, or P and the name of a portal
	initial, settings map[string]string  // when the session began, and now
	status            byte               // of the transaction, as in ReadyForQuery; 0 before
	skipping          bool               // an error was sent: messages up to Sync are skipped
}

// serve serves one client until it disconnects.
func serve(conn net.Conn, engine pool) {
	defer conn.Close() //nolint:errcheck // the session is over
	s := &session{
		Backend: pgproto3.NewBackend(conn, conn), engine: engine, types: pgtype.NewMap(), portals: map[string]*portal{},
		key:     pgproto3.BackendKeyData{ProcessID: rand.Uint32(), SecretKey: binary.BigEndian.AppendUint32(nil, rand.Uint32())},
		initial: maps.Clone(defaults), settings: map[string]string{},
	}
	defer running.Delete(fmt.Sprint(s.key.ProcessID, s.key.SecretKey))
	for s.startup(conn); s.status != 0 && s.Flush() == nil; {
		message, err := s.Receive()
		if _, over := message.(*pgproto3.Terminate); over || err != nil { // asyncpg waits for the end
			return
		}
		if !s.skipping {
			s.take(message)
		}
		switch message.(type) {
		case *pgproto3.Query, *pgproto3.Sync:
			if s.status == 'I' { // portals end with the transaction
				s.drop('P', "")
			}
			s.skipping = false
			s.Send(&pgproto3.ReadyForQuery{TxStatus: s.status})
		}
	}
}

// startup refuses encryption, accepts every user, and ignores settings that it does not support.
func (s *session) startup(conn net.Conn) {
	message, _ := s.ReceiveStartupMessage()
	switch m := message.(type) {
	case *pgproto3.SSLRequest, *pgproto3.GSSEncRequest:
		_, _ = conn.Write([]byte{'N'})
		s.startup(conn)
	case *pgproto3.CancelRequest:
		if cancel, ok := running.Load(fmt.Sprint(m.ProcessID, m.SecretKey)); ok {
			cancel.(context.CancelFunc)()
		}
	case *pgproto3.StartupMessage:
		s.Send(&pgproto3.AuthenticationOk{})
		maps.DeleteFunc(m.Parameters, func(name, _ string) bool { return !changeable[name] })
		maps.Copy(s.initial, m.Parameters)
		s.report(s.initial)
		s.status = 'I'
		s.Send(&s.key)
		s.Send(&pgproto3.ReadyForQuery{TxStatus: s.status})
	}
}

// find returns a prepared statement (kind S) or a portal (P).
func (s *session) find(kind byte, name string) *portal {
	p, ok := s.portals[string(kind)+name]
	if !ok {
		panic(failure(map[byte]string{'S': "26000", 'P': "34000"}[kind], "%q does not exist", name))
	}
	return p
}

// drop forgets the one of a name, or all of a kind.
func (s *session) drop(kind byte, name string) {
	maps.DeleteFunc(s.portals, func(key string, _ *portal) bool { return key[0] == kind && (name == "" || key[1:] == name) })
}

// take answers a message, or sends the failure with which it panics.
func (s *session) take(message pgproto3.FrontendMessage) {
	defer func() {
		if r := recover(); r != nil {
			f, ok := r.(*pgproto3.ErrorResponse)
			if !ok {
				f = failure("XX000", "internal error: %v", r)
			}
			s.Send(f)
			s.skipping, s.status = true, cmp.Or(map[byte]byte{'T': 'E'}[s.status], s.status)
		}
	}()
	switch m := message.(type) {
	case *pgproto3.Query:
		p := parse(m.String)
		if s.run(p); len(p.answer.Columns) > 0 {
			s.Send(s.rowDescription(p))
		}
		s.execute(p, 0)
	case *pgproto3.Parse:
		p := parse(m.Query)
		copy(p.types, m.ParameterOIDs)
		p.describe, s.portals["S"+m.Name] = true, p
		s.Send(&pgproto3.ParseComplete{})
	case *pgproto3.Bind:
		st := s.find('S', m.PreparedStatement)
		p := &portal{sql: st.sql, words: st.words, formats: m.ResultFormatCodes, parameters: make([]*string, len(m.Parameters))}
		for i, value := range m.Parameters {
			oid := cmp.Or(append(st.types, make([]uint32, i+1)...)[i], pgtype.TextOID)
			if text := string(s.recode(oid, format(m.ParameterFormatCodes, i), pgtype.TextFormatCode, value)); value != nil {
				p.parameters[i] = &text
			}
		}
		s.portals["P"+m.DestinationPortal] = p
		s.Send(&pgproto3.BindComplete{})
	case *pgproto3.Describe:
		p := s.find(m.ObjectType, m.Name)
		s.run(p)
		if m.ObjectType == 'S' {
			for i, oid := range p.types {
				name := cmp.Or(append(p.answer.Parameters, make([]string, i+1)...)[i], "text")
				p.types[i] = cmp.Or(oid, supported(s.types.TypeForName(name)).OID)
			}
			s.Send(&pgproto3.ParameterDescription{ParameterOIDs: p.types})
		}
		s.Send(s.rowDescription(p))
	case *pgproto3.Execute:
		s.execute(s.find('P', m.Portal), int(m.MaxRows))
	case *pgproto3.Close:
		delete(s.portals, string(m.ObjectType)+m.Name)
		s.Send(&pgproto3.CloseComplete{})
	}
}

// parse finds the words of a statement and its parameters.
func parse(sql string) *portal {
	words, types, ended := []string{}, []uint32{}, false
	scan, err := pg_query.Scan(sql)
	if err != nil { // in the engine's own dialect, or an error of it
		words = append(words, sql)
	}
	for _, t := range scan.GetTokens() {
		switch word := sql[t.Start:t.End]; {
		case t.Token == pg_query.Token_SQL_COMMENT || t.Token == pg_query.Token_C_COMMENT:
		case word == ";":
			ended = len(words) > 0
		case ended:
			panic(failure("0A000", "this engine answers one statement in a query: send each by itself"))
		case t.Token == pg_query.Token_PARAM:
			n, _ := strconv.Atoi(word[1:])
			types = append(types, make([]uint32, max(0, min(n, 1<<16-1)-len(types)))...)
			fallthrough
		default:
			words = append(words, word)
		}
	}
	return &portal{sql: sql, words: strings.Join(words, " "), types: types}
}

// format returns the format of a column or a parameter: the codes are none, one for all, or one for each.
func format(codes []int16, i int) int16 {
	if len(codes) == 0 {
		return pgtype.TextFormatCode
	}
	return codes[min(i, len(codes)-1)]
}

// run answers a statement that has not run.
func (s *session) run(p *portal) {
	if p.answer != nil {
		return
	}
	limit, _ := strconv.Atoi(s.settings["statement_timeout"])
	ctx, cancel := context.WithTimeout(context.Background(), cmp.Or(time.Duration(limit)*time.Millisecond, 24*365*time.Hour))
	defer cancel()
	running.Store(fmt.Sprint(s.key.ProcessID, s.key.SecretKey), cancel)
	if p.answer = s.local(p); p.answer == nil {
		p.answer = s.engine.answer(ctx, request{p.sql, p.parameters, p.describe})
	}
}

func supported(t *pgtype.Type, ok bool) *pgtype.Type {
	if !ok {
		panic(failure("0A000", "the type of a column or of a parameter in binary is not supported"))
	}
	return t
}

// recode returns a value in another format.
func (s *session) recode(oid uint32, from, to int16, value []byte) []byte {
	if value == nil || from == to && oid != pgtype.BoolOID { // PostgreSQL writes t and f
		return value
	}
	t := supported(s.types.TypeForOID(oid))
	decoded, err := t.Codec.DecodeValue(s.types, oid, from, value)
	if strings.HasPrefix(t.Name, "json") { // the digits of its numbers stay
		decoded, err = t.Codec.DecodeDatabaseSQLValue(s.types, oid, from, value)
	}
	recoded, failed := s.types.Encode(oid, to, decoded, []byte{})
	if err != nil || failed != nil { // which can contain the value
		panic(failure("22P03", "a value is no %s", t.Name))
	}
	return recoded
}

func (s *session) rowDescription(p *portal) pgproto3.BackendMessage {
	if len(p.answer.Columns) == 0 {
		return &pgproto3.NoData{}
	}
	d := &pgproto3.RowDescription{}
	for i, c := range p.answer.Columns {
		oid, format := supported(s.types.TypeForName(c.Type)).OID, format(p.formats, i)
		d.Fields = append(d.Fields, pgproto3.FieldDescription{Name: []byte(c.Name), DataTypeOID: oid, DataTypeSize: -1, TypeModifier: -1, Format: format})
	}
	return d
}

// execute sends the next rows, at most limit of them unless it is 0.
func (s *session) execute(p *portal, limit int) {
	s.run(p)
	rows := p.answer.Rows[:min(len(p.answer.Rows), cmp.Or(limit, len(p.answer.Rows)))]
	for _, values := range rows {
		row := &pgproto3.DataRow{}
		for i, c := range p.answer.Columns {
			value, text := []byte(values[i]), ""
			switch {
			case string(value) == "null":
				value = nil
			case json.Unmarshal(value, &text) == nil:
				value = []byte(text)
			}
			row.Values = append(row.Values, s.recode(supported(s.types.TypeForName(c.Type)).OID, pgtype.TextFormatCode, format(p.formats, i), value))
		}
		s.Send(row)
	}
	p.answer.Rows = p.answer.Rows[len(rows):]
	switch {
	case p.words == "":
		s.Send(&pgproto3.EmptyQueryResponse{})
	case len(p.answer.Rows) > 0:
		s.Send(&pgproto3.PortalSuspended{})
	default:
		s.report(p.answer.Claim)
		s.Send(&pgproto3.CommandComplete{CommandTag: []byte(cmp.Or(p.answer.tag, fmt.Sprintf("SELECT %d", len(rows))))})
	}
}
