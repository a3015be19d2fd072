package proxy_test

import (
	"context"
	"io"
	"testing"
	"time"

	"github.com/dpwatch/dpwatch/proxy"
)

// TestIdleTimeout: a session that waits for its client ends properly; one that works, or is in a transaction,
// goes on.
func TestIdleTimeout(t *testing.T) {
	t.Parallel()
	const limit = 100 * time.Millisecond
	p := start(t, postgres.upstream(t), func(o *proxy.Options) { o.IdleTimeout = limit })

	working := connect(t, p.addr, "")
	if _, err := working.Exec(t.Context(), "SELECT pg_sleep(0.6)"); err != nil {
		t.Errorf("a statement that takes long: %v", err)
	}
	batched := connect(t, p.addr, "") // two messages at once: the first answer does not make it idle
	if _, err := batched.PgConn().Exec(t.Context(), "SELECT 1; SELECT pg_sleep(0.6)").ReadAll(); err != nil {
		t.Errorf("a long statement behind a short one: %v", err)
	}
	block := connect(t, p.addr, "")
	if _, err := block.Exec(t.Context(), "BEGIN"); err != nil {
		t.Fatal(err)
	}
	time.Sleep(6 * limit)
	if _, err := block.Exec(t.Context(), "COMMIT"); err != nil {
		t.Errorf("a transaction that waits: %v", err)
	}

	raw := p.dial(t)
	send(t, raw, hello())
	until(t, raw, 'Z')
	if e := refusalOf(t, raw); e.Code != "57P05" {
		t.Errorf("SQLSTATE %s, want 57P05", e.Code)
	}
	eventually(t, "all idle sessions have ended", func() bool { return p.Stats().OpenSessions == 0 })
	if got := p.Stats(); got.IdleEnded != 4 || got.FailedSessions != 0 {
		t.Errorf("%d ended, %d failed; want 4 and 0", got.IdleEnded, got.FailedSessions)
	}
	if err := working.Ping(context.Background()); err == nil {
		t.Error("an ended session answers")
	}
}

// TestIdlePipeline: a message that waits for its answer is work, whatever was answered before it.
func TestIdlePipeline(t *testing.T) {
	t.Parallel()
	p := start(t, postgres.upstream(t), func(o *proxy.Options) { o.IdleTimeout = 50 * time.Millisecond })
	conn := p.dial(t)
	send(t, conn, hello())
	until(t, conn, 'Z')
	send(t, conn, message('Q', "SELECT 1\x00"), message('Q', "SELECT pg_sleep(0.5)\x00"))
	until(t, conn, 'Z')
	if got := until(t, conn, 'Z'); got != "TDCZ" {
		t.Errorf("the second statement's answer is %q, want TDCZ", got)
	}
	if rest, err := io.ReadAll(conn); err != nil || len(rest) == 0 || rest[0] != 'E' {
		t.Errorf("then %q, %v; want an error and the end", rest, err)
	}
}
