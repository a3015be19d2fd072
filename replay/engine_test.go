package replay_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/dpwatch/dpwatch/internal/outcome"
	"github.com/dpwatch/dpwatch/internal/pgtemp/pgtest"
	"github.com/dpwatch/dpwatch/replay"
)

// oddEngine is an engine with a PostgreSQL port that rejects settings and misbehaves as a query's text demands. It
// returns its connection string and a function for the messages that it received.
func oddEngine(t *testing.T) (dsn string, heard func() []string) {
	t.Helper()
	var mu sync.Mutex
	var texts []string
	note := func(protocol, sql string) {
		mu.Lock()
		defer mu.Unlock()
		texts = append(texts, protocol+" "+sql)
	}
	return pgtest.Serve(t, func(b *pgproto3.Backend) { oddSession(b, note) }), func() []string {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(texts)
	}
}

func oddSession(b *pgproto3.Backend, note func(protocol, sql string)) {
	b.Send(&pgproto3.ReadyForQuery{TxStatus: 'I'})
	parsed := ""
	for b.Flush() == nil {
		message, err := b.Receive()
		if err != nil {
			return
		}
		switch m := message.(type) {
		case *pgproto3.Parse:
			parsed = m.Query
			note("extended", parsed)
			b.Send(&pgproto3.ParseComplete{})
		case *pgproto3.Bind:
			b.Send(&pgproto3.BindComplete{})
		case *pgproto3.Describe:
			b.Send(oddColumns())
		case *pgproto3.Execute:
			if !oddAnswer(b, parsed) {
				return
			}
		case *pgproto3.Sync:
			b.Send(&pgproto3.ReadyForQuery{TxStatus: 'I'})
		case *pgproto3.Query:
			note("simple", m.String)
			if strings.HasPrefix(m.String, "SET") {
				if !strings.Contains(m.String, "statement_timeout") {
					b.Send(&pgproto3.ErrorResponse{Severity: "ERROR", Code: "42704", Message: "no such setting"})
				} else {
					b.Send(&pgproto3.CommandComplete{CommandTag: []byte("SET")})
				}
			} else {
				b.Send(oddColumns())
				if !oddAnswer(b, m.String) {
					return
				}
			}
			b.Send(&pgproto3.ReadyForQuery{TxStatus: 'I'})
		case *pgproto3.Terminate:
			return
		}
	}
}

func oddColumns() *pgproto3.RowDescription {
	return &pgproto3.RowDescription{Fields: []pgproto3.FieldDescription{
		{Name: []byte("a"), DataTypeOID: 701, DataTypeSize: 8}, {Name: []byte("b"), DataTypeOID: 701, DataTypeSize: 8},
	}}
}

// oddAnswer reports whether the session continues.
func oddAnswer(b *pgproto3.Backend, sql string) bool {
	switch {
	case strings.Contains(sql, "sleep"):
		_ = b.Flush()
		for { // until the client disconnects
			if _, err := b.Receive(); err != nil {
				return false
			}
		}
	case strings.Contains(sql, "leave"):
		b.Send(&pgproto3.ErrorResponse{Severity: "FATAL", Code: "XX000", Message: "I leave"})
		_ = b.Flush()
		return false
	case strings.Contains(sql, "drop"):
		b.Send(&pgproto3.ErrorResponse{Severity: "ERROR", Code: "XX001", Message: "no"})
		_ = b.Flush()
		return false
	case strings.Contains(sql, "narrow"):
		b.Send(&pgproto3.DataRow{Values: [][]byte{[]byte("1")}})
	case strings.Contains(sql, "fail"):
		b.Send(&pgproto3.ErrorResponse{Severity: "ERROR", Code: "22012", Message: "no"})
		return true
	default:
		b.Send(&pgproto3.DataRow{Values: [][]byte{[]byte("1"), []byte("2")}})
	}
	b.Send(&pgproto3.CommandComplete{CommandTag: []byte("SELECT 1")})
	return true
}

// A failure of an engine in one world is an outcome there or an error, in both protocols; the replay never hangs, and
// the other world's trials are unaffected.
func TestOddEngine(t *testing.T) {
	t.Parallel()
	for _, simple := range []bool{false, true} {
		for _, tc := range []struct{ name, word, state, wantErr string }{
			{"no answer in time", "sleep", replay.Timeout, ""},
			{"an error of its own", "fail", "22012", ""},
			{"the end of the session after an error", "leave", "XX000", ""},
			{"the end of the session without a word", "drop", "XX001", ""},
			{"a row of another width", "narrow", "", "a row of 1 values under 2 columns"},
		} {
			t.Run(fmt.Sprintf("%s, simple %t", tc.name, simple), func(t *testing.T) {
				t.Parallel()
				dsn, heard := oddEngine(t)
				opt := options("postgres://u@127.0.0.1:1/x")
				opt.Engines, opt.Connections = []string{dsn}, 1
				var mu sync.Mutex
				var warnings []string
				opt.Warn = func(text string) { mu.Lock(); warnings = append(warnings, text); mu.Unlock() }
				s := replay.Statement{
					Simple: simple, Worlds: []string{"SELECT good", "SELECT " + tc.word},
					Settings: map[string]string{"dp.epsilon": "it's", "work_mem": "1MB"}, SearchPath: []string{"a b"},
				}
				ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
				defer cancel()
				play := func() ([]replay.Round, error) {
					run, err := player(t, opt).Start(s, 1)
					if err != nil {
						t.Fatal(err)
					}
					defer run.Close()
					warnings = nil
					return run.Rounds(ctx, 2)
				}
				if tc.state == replay.Timeout {
					opt.StatementTimeout = time.Millisecond // plus engineGrace, for the world that answers
				}
				got, err := play()
				late := func(r replay.Round) bool { return r[0].SQLState == replay.Timeout }
				for ; tc.state == replay.Timeout && slices.ContainsFunc(got, late) && opt.StatementTimeout < time.Minute; got, err = play() { // on a slow machine
					opt.StatementTimeout = 4 * max(opt.StatementTimeout, time.Second)
				}
				if tc.wantErr != "" {
					if err == nil || !strings.Contains(err.Error(), tc.wantErr) {
						t.Errorf("got %v, want %q", err, tc.wantErr)
					}
					return
				}
				if err != nil {
					t.Fatal(err)
				}
				for _, round := range got {
					if round[0].Failed() || round[0].Rows[0][1] != (outcome.Value{Kind: outcome.Number, Num: 2, Text: "2"}) || round[1].SQLState != tc.state {
						t.Errorf("round %+v, want state %q on D1 alone", round, tc.state)
					}
				}
				want := "refuses the settings default_transaction_read_only, dp.epsilon, search_path, work_mem: trials run without them"
				if len(warnings) != 1 || !strings.Contains(warnings[0], want) {
					t.Errorf("warnings %q, want one about the settings that it refuses", warnings)
				}
				protocol := map[bool]string{false: "extended", true: "simple"}[simple]
				for _, text := range []string{`simple SET "dp"."epsilon" = 'it''s'`, `simple SET "search_path" = "a b"`, protocol + " SELECT good"} {
					if !slices.Contains(heard(), text) {
						t.Errorf("the engine was not sent %q but %q", text, heard())
					}
				}
			})
		}
	}
}
