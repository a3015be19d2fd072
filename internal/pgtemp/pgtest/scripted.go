package pgtest

import (
	"fmt"
	"net"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgproto3"
)

// Serve serves a port that speaks PostgreSQL's protocol: each accepted session gets a goroutine, and ends when serve
// returns. The client is authenticated already; serve sends the first ReadyForQuery.
func Serve(t testing.TB, serve func(*pgproto3.Backend)) (dsn string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				b := pgproto3.NewBackend(conn, conn)
				if _, err := b.ReceiveStartupMessage(); err != nil {
					return
				}
				b.Send(&pgproto3.AuthenticationOk{})
				b.Send(&pgproto3.ParameterStatus{Name: "client_encoding", Value: "UTF8"})
				b.Send(&pgproto3.ParameterStatus{Name: "standard_conforming_strings", Value: "on"})
				serve(b)
			}()
		}
	}()
	return fmt.Sprintf("postgres://u@%s/x?sslmode=disable", listener.Addr())
}

// Answer is what a server of ServeAnswer sends for every statement.
type Answer struct {
	Name     string
	Describe pgproto3.BackendMessage   // the description of the rows
	Execute  []pgproto3.BackendMessage // the rows, and the end of the statement
}

// OddAnswers are answers that PostgreSQL gives to none of dpwatch's own queries, or that break the protocol.
func OddAnswers() []Answer {
	done := &pgproto3.CommandComplete{CommandTag: []byte("SELECT 1")}
	row := func(values ...[]byte) pgproto3.BackendMessage { return &pgproto3.DataRow{Values: values} }
	columns := func(n int, oid uint32, format int16) pgproto3.BackendMessage {
		d := &pgproto3.RowDescription{}
		for i := range n {
			d.Fields = append(d.Fields, pgproto3.FieldDescription{Name: fmt.Appendf(nil, "c%d", i), DataTypeOID: oid, DataTypeSize: -1, Format: format})
		}
		return d
	}
	fill := func(n int, value []byte) pgproto3.BackendMessage {
		values := make([][]byte, n)
		for i := range values {
			values[i] = value
		}
		return row(values...)
	}
	const text, integer, boolean = 25, 23, 16
	all := []Answer{
		{"no row", columns(2, text, 0), []pgproto3.BackendMessage{done}},
		{"no columns", columns(0, text, 0), []pgproto3.BackendMessage{row(), done}},
		{"no description", &pgproto3.NoData{}, []pgproto3.BackendMessage{done}},
		{"an empty query", &pgproto3.NoData{}, []pgproto3.BackendMessage{&pgproto3.EmptyQueryResponse{}}},
		{"rows without a description", &pgproto3.NoData{}, []pgproto3.BackendMessage{fill(2, []byte("x")), done}},
		{"rows wider than the description", columns(1, text, 0), []pgproto3.BackendMessage{fill(3, []byte("x")), done}},
		{"rows narrower than the description", columns(3, text, 0), []pgproto3.BackendMessage{row([]byte("x")), done}},
		{"another description after a row", columns(1, text, 0), []pgproto3.BackendMessage{row([]byte("x")), columns(3, text, 0), done}},
		{"binary values", columns(2, integer, 1), []pgproto3.BackendMessage{fill(2, []byte{0}), done}},
		{"an error without fields", columns(1, text, 0), []pgproto3.BackendMessage{&pgproto3.ErrorResponse{}}},
		{"ReadyForQuery in the middle", columns(1, text, 0), []pgproto3.BackendMessage{row([]byte("x")), &pgproto3.ReadyForQuery{TxStatus: 'I'}, done}},
		{"the end twice", columns(1, text, 0), []pgproto3.BackendMessage{done, done}},
		{"COPY to the client", columns(1, text, 0), []pgproto3.BackendMessage{&pgproto3.CopyOutResponse{}, &pgproto3.CopyData{Data: []byte("x")}, &pgproto3.CopyDone{}, done}},
		{"COPY from the client", columns(1, text, 0), []pgproto3.BackendMessage{&pgproto3.CopyInResponse{}, done}},
		{"authentication again", columns(1, text, 0), []pgproto3.BackendMessage{&pgproto3.AuthenticationOk{}, done}},
	}
	for n := range 8 {
		all = append(all,
			Answer{fmt.Sprintf("%d columns", n+1), columns(n+1, text, 0), []pgproto3.BackendMessage{fill(n+1, []byte("x")), done}},
			Answer{fmt.Sprintf("%d NULLs", n+1), columns(n+1, text, 0), []pgproto3.BackendMessage{fill(n+1, nil), done}},
			Answer{fmt.Sprintf("%d booleans", n+1), columns(n+1, boolean, 0), []pgproto3.BackendMessage{fill(n+1, []byte("t")), done}},
			Answer{fmt.Sprintf("%d negative numbers, twice", n+1), columns(n+1, integer, 0), []pgproto3.BackendMessage{fill(n+1, []byte("-7")), fill(n+1, []byte("-7")), done}},
		)
	}
	return all
}

// ServeAnswer serves a port whose server gives the same answer to every statement except SET, BEGIN, COMMIT and
// ROLLBACK.
func ServeAnswer(t testing.TB, a Answer) (dsn string) {
	t.Helper()
	return Serve(t, func(b *pgproto3.Backend) {
		b.Send(&pgproto3.ReadyForQuery{TxStatus: 'I'})
		var parameters pgproto3.ParameterDescription
		for b.Flush() == nil {
			message, err := b.Receive()
			if err != nil {
				return
			}
			switch m := message.(type) {
			case *pgproto3.Parse:
				parameters.ParameterOIDs = nil
				for strings.Contains(m.Query, fmt.Sprintf("$%d", len(parameters.ParameterOIDs)+1)) {
					parameters.ParameterOIDs = append(parameters.ParameterOIDs, 25)
				}
				b.Send(&pgproto3.ParseComplete{})
			case *pgproto3.Bind:
				b.Send(&pgproto3.BindComplete{})
			case *pgproto3.Describe:
				if m.ObjectType == 'S' {
					b.Send(&parameters)
				}
				b.Send(a.Describe)
			case *pgproto3.Close:
				b.Send(&pgproto3.CloseComplete{})
			case *pgproto3.Execute:
				a.send(b)
			case *pgproto3.Query:
				if tag := command(m.String); tag != "" {
					b.Send(&pgproto3.CommandComplete{CommandTag: []byte(tag)})
				} else {
					b.Send(a.Describe)
					a.send(b)
				}
				b.Send(&pgproto3.ReadyForQuery{TxStatus: 'I'})
			case *pgproto3.Sync:
				b.Send(&pgproto3.ReadyForQuery{TxStatus: 'I'})
			case *pgproto3.Terminate:
				return
			}
		}
	})
}

func (a Answer) send(b *pgproto3.Backend) {
	for _, m := range a.Execute {
		b.Send(m)
	}
}

// command returns the tag of a statement without rows, "" for any other.
func command(sql string) string {
	var first string
	_, _ = fmt.Sscan(sql, &first)
	switch first = strings.ToUpper(strings.Trim(first, ";")); first {
	case "SET", "BEGIN", "COMMIT", "ROLLBACK":
		return first
	}
	return ""
}
