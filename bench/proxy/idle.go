package proxy

import (
	"context"
	"fmt"
	"net"
	"os/exec"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"
)

// idle prints the proxies' memory with many idle sessions: each has run one query and waits. PostgreSQL itself uses
// megabytes per session, so a stand-in answers that implements only the necessary part of the protocol.
func idle(ctx context.Context, o options) error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	defer l.Close()
	go standIn(l)
	upstream := l.Addr().(*net.TCPAddr).Port
	fmt.Println("\n| idle sessions | target | RSS MB | KB per session |")
	fmt.Println("|---|---|---|---|")
	for _, n := range []int{1000, 5000} {
		for _, v := range []variant{standard[0], standard[2], {name: "pgbouncer"}} {
			t, err := startIdle(ctx, o, v, upstream)
			if err != nil {
				return err
			}
			if t == nil {
				continue
			}
			err = measureIdle(t, n)
			t.stop()
			if err != nil {
				fmt.Printf("| %d | %s | - | %v |\n", n, v.name, err)
			}
		}
	}
	return nil
}

func startIdle(ctx context.Context, o options, v variant, upstream int) (*target, error) {
	if v.name == "pgbouncer" {
		return startPgBouncer(ctx, upstream, bouncerTLS{})
	}
	if _, err := exec.LookPath(o.dpwatch); err != nil {
		return nil, nil
	}
	return startDpwatch(ctx, o.dpwatch, v, upstream, fmt.Sprintf("postgres://nobody@127.0.0.1:%d/shadow?sslmode=disable", upstream))
}

func measureIdle(t *target, n int) error {
	before := t.rss()
	var conns []net.Conn
	defer func() {
		for _, c := range conns {
			_ = c.Close()
		}
	}()
	for range n {
		c, err := greet(t.dsn)
		if err != nil {
			return fmt.Errorf("session %d: %w", len(conns)+1, err)
		}
		conns = append(conns, c)
	}
	time.Sleep(2 * time.Second)
	after := t.rss()
	fmt.Printf("| %d | %s | %.1f | %.1f |\n", n, t.name, float64(after)/1e6, float64(after-before)/1e3/float64(n))
	return nil
}

// greet opens a session, with TLS if the DSN requires it, and runs one query.
func greet(dsn string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	c, err := pgconn.Connect(ctx, dsn)
	if err != nil {
		return nil, err
	}
	if _, err := c.Exec(ctx, "SELECT 1").ReadAll(); err != nil {
		_ = c.Close(ctx)
		return nil, err
	}
	session, err := c.Hijack()
	if err != nil {
		return nil, err
	}
	return session.Conn, nil
}

// standIn accepts every session and completes every query at once.
func standIn(l net.Listener) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		go func() {
			defer c.Close()
			b := pgproto3.NewBackend(c, c)
			if _, err := b.ReceiveStartupMessage(); err != nil {
				return
			}
			b.Send(&pgproto3.AuthenticationOk{})
			for name, value := range map[string]string{"server_version": "15.0", "client_encoding": "UTF8", "standard_conforming_strings": "on"} {
				b.Send(&pgproto3.ParameterStatus{Name: name, Value: value})
			}
			b.Send(&pgproto3.BackendKeyData{ProcessID: 1, SecretKey: []byte{0, 0, 0, 2}})
			b.Send(&pgproto3.ReadyForQuery{TxStatus: 'I'})
			for b.Flush() == nil {
				switch m, err := b.Receive(); m.(type) {
				case *pgproto3.Query, *pgproto3.Sync:
					b.Send(&pgproto3.CommandComplete{CommandTag: []byte("SELECT 0")})
					b.Send(&pgproto3.ReadyForQuery{TxStatus: 'I'})
				case *pgproto3.Terminate:
					return
				default:
					if err != nil {
						return
					}
				}
			}
		}()
	}
}
