package proxy_test

import (
	"io"
	"net"
	"testing"
	"time"

	"github.com/dpwatch/dpwatch/internal/eventually"
	"github.com/dpwatch/dpwatch/proxy"
)

// TestIdleTimeout: an idle session ends with an error message; a busy one, or one in a transaction, continues.
func TestIdleTimeout(t *testing.T) {
	t.Parallel()
	const limit = 100 * time.Millisecond
	p := start(t, postgres.upstream(t), func(o *proxy.Options) { o.IdleTimeout = limit })

	// The first messages directly follow the startup, so that the session is not idle before them.
	begin := func(messages ...[]byte) net.Conn {
		conn := p.dial(t)
		send(t, conn, append([][]byte{packet(version30, "user\x00ann\x00database\x00bank\x00\x00")}, messages...)...)
		until(t, conn, 'Z')
		return conn
	}
	slow := message('Q', "SELECT pg_sleep(0.6)\x00")
	answered := func(conn net.Conn, want string) {
		t.Helper()
		if got := until(t, conn, 'Z'); got != want {
			t.Errorf("the answer is %q, want %q", got, want)
		}
	}
	block := begin(message('Q', "BEGIN\x00"))
	answered(begin(slow), "TDCZ")
	batched := begin(message('Q', "SELECT 1\x00"), slow) // the first answer does not make it idle
	answered(batched, "TDCZ")
	answered(batched, "TDCZ")
	several := begin(message('Q', "SELECT 1; SELECT pg_sleep(0.6)\x00"))
	answered(several, "TDCTDCZ")
	answered(block, "CZ")
	time.Sleep(6 * limit) // a session in a transaction can wait longer than the limit
	send(t, block, message('Q', "COMMIT\x00"))
	answered(block, "CZ")

	raw := begin()
	if e := refusalOf(t, raw); e.Code != "57P05" {
		t.Errorf("SQLSTATE %s, want 57P05", e.Code)
	}
	eventually.True(t, "all idle sessions have ended", func() bool { return p.Stats().OpenSessions == 0 })
	if got := p.Stats(); got.IdleEnded != 5 || got.FailedSessions != 0 {
		t.Errorf("%d ended, %d failed; want 5 and 0", got.IdleEnded, got.FailedSessions)
	}
}

// TestIdlePipeline: a session with an unanswered message is not idle, whatever was answered before.
func TestIdlePipeline(t *testing.T) {
	t.Parallel()
	p := start(t, postgres.upstream(t), func(o *proxy.Options) { o.IdleTimeout = 50 * time.Millisecond })
	conn := p.dial(t)
	send(t, conn, hello(), message('Q', "SELECT 1\x00"), message('Q', "SELECT pg_sleep(0.5)\x00"))
	until(t, conn, 'Z')
	until(t, conn, 'Z')
	if got := until(t, conn, 'Z'); got != "TDCZ" {
		t.Errorf("the second statement's answer is %q, want TDCZ", got)
	}
	if rest, err := io.ReadAll(conn); err != nil || len(rest) == 0 || rest[0] != 'E' {
		t.Errorf("then %q, %v; want an error and the end", rest, err)
	}
}
