package replay_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/dpwatch/dpwatch/internal/pgtemp/pgtest"
	"github.com/dpwatch/dpwatch/replay"
)

// keepingEngine is an engine that supports only simple queries and uses one permanent session at its source for all
// clients.
func keepingEngine(t *testing.T, source string) (dsn string) {
	t.Helper()
	conn, err := pgconn.Connect(t.Context(), source)
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex // guards conn
	t.Cleanup(func() {
		mu.Lock()
		defer mu.Unlock()
		_ = conn.Close(context.Background())
	})
	ask := func(sql string) ([]*pgconn.Result, error) {
		mu.Lock()
		defer mu.Unlock()
		return conn.Exec(context.Background(), sql).ReadAll()
	}
	return pgtest.Serve(t, func(b *pgproto3.Backend) { keepingSession(b, ask) })
}

func keepingSession(b *pgproto3.Backend, ask func(string) ([]*pgconn.Result, error)) {
	for {
		b.Send(&pgproto3.ReadyForQuery{TxStatus: 'I'})
		if b.Flush() != nil {
			return
		}
		message, err := b.Receive()
		query, ok := message.(*pgproto3.Query)
		if err != nil || !ok {
			return
		}
		if !strings.HasPrefix(query.String, "SET ") {
			results, err := ask(query.String)
			if err != nil {
				code := "0A000"
				if pg := (*pgconn.PgError)(nil); errors.As(err, &pg) && strings.HasPrefix(pg.Code, "22") {
					code = pg.Code
				}
				b.Send(&pgproto3.ErrorResponse{Severity: "ERROR", Code: code, Message: "not supported"})
				continue
			}
			for _, result := range results {
				fields := make([]pgproto3.FieldDescription, len(result.FieldDescriptions))
				for i, f := range result.FieldDescriptions {
					fields[i] = pgproto3.FieldDescription{Name: []byte(f.Name), DataTypeOID: f.DataTypeOID, DataTypeSize: f.DataTypeSize, TypeModifier: -1}
				}
				b.Send(&pgproto3.RowDescription{Fields: fields})
				for _, row := range result.Rows {
					b.Send(&pgproto3.DataRow{Values: row})
				}
			}
		}
		b.Send(&pgproto3.CommandComplete{CommandTag: []byte("SELECT 1")})
	}
}

// readsPeople reads public.people until the test ends, each time in a session of its own, so that the scans are reported
// at once.
func readsPeople(t *testing.T, dsn string) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			if conn, err := pgconn.Connect(ctx, dsn); err == nil {
				_, _ = conn.Exec(ctx, "SELECT count(*) FROM public.people").ReadAll()
				_ = conn.Close(ctx)
			}
		}
	}()
	t.Cleanup(func() { cancel(); <-done })
}

// TestEngineThatKeepsItsSession: a session reports its scans while it lasts only if it is used again.
func TestEngineThatKeepsItsSession(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name, d0, d1, wantErr, unverified string
		busy                              bool
	}{
		{name: "right", d0: "d0", d1: "d1"},
		{name: "the original", d0: "public", d1: "public", wantErr: "read public.people, the original of a copy: let its source find the tables in d0"},
		{name: "the original, as others do", d0: "public", d1: "public", busy: true, unverified: "other sessions read public.people at the same time"},
		{name: "swapped", d0: "d1", d1: "d0", wantErr: "read d1.people, a copy of another world: let its source find the tables in d0"},
		{name: "the second does not know its copies", d0: "d0", d1: "elsewhere", wantErr: "those on D1 (schema d1), which run through the engine "},
		{name: "the second fails by its data", d0: "d0", d1: "d4", unverified: "the trials on D1 fail before they read a copy"},
		{name: "the second does not know its copies, and the first shows no reads", d0: "d3", d1: "elsewhere", wantErr: "fail each time (SQLSTATE 0A000)"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			dsn := shadow(t) // scans are counted per database
			pgtest.Exec(t, dsn, "CREATE TABLE people AS TABLE d0.people", "CREATE SCHEMA d3; CREATE VIEW d3.people AS SELECT 1 AS id",
				"CREATE SCHEMA d4; CREATE VIEW d4.people AS SELECT 1 AS id WHERE 1 / (random() * 0)::int = 1")
			if tc.busy {
				readsPeople(t, dsn)
			}
			opt := options(dsn)
			opt.Originals = []string{"public"}
			opt.Protocol, opt.Copies = replay.Simple, []string{"d0", "d1"}
			for _, path := range []string{tc.d0, tc.d1} {
				opt.Engines = append(opt.Engines, keepingEngine(t, dsn+"&search_path="+path))
			}
			run, err := player(t, opt).Start(replay.Statement{Worlds: []string{"SELECT count(*) FROM people", "SELECT count(*) FROM people"}, Simple: true}, 1)
			if err != nil {
				t.Fatal(err)
			}
			defer run.Close()
			reads, err := run.Reads(t.Context())
			if tc.wantErr == "" && err != nil || tc.wantErr != "" && (err == nil || !strings.Contains(err.Error(), tc.wantErr)) {
				t.Errorf("got %v, want %q", err, tc.wantErr)
			}
			if !strings.Contains(reads.Unverified, tc.unverified) || tc.unverified == "" && reads.Unverified != "" {
				t.Errorf("unverified %q, want %q", reads.Unverified, tc.unverified)
			}
		})
	}
}
