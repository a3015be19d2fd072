package proxy

import (
	"bufio"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"os/exec"
	"strings"
	"time"
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

// address returns the host and port in a result of dsn.
func address(dsn string) string {
	addr, _, _ := strings.Cut(strings.TrimPrefix(dsn, "postgres://postgres@"), "/")
	return addr
}

// greet opens a session, with TLS if the DSN requires it, and runs one query.
func greet(dsn string) (net.Conn, error) {
	dial := func(addr string) (net.Conn, error) { return net.Dial("tcp", addr) }
	if strings.Contains(dsn, "sslmode=require") {
		dial = dialTLS
	}
	c, err := dial(address(dsn))
	if err != nil {
		return nil, err
	}
	_ = c.SetDeadline(time.Now().Add(20 * time.Second))
	body := "user\x00postgres\x00database\x00postgres\x00\x00"
	start := binary.BigEndian.AppendUint32(nil, uint32(len(body)+8))
	start = append(binary.BigEndian.AppendUint32(start, 3<<16), body...)
	w := wire{conn: c, buf: make([]byte, 4<<10)}
	for _, m := range [][]byte{start, message(nil, 'Q', "SELECT 1\x00")} {
		w.msg = m
		if err := w.exchange(); err != nil {
			_ = c.Close()
			return nil, err
		}
	}
	return c, nil
}

// standIn accepts every session and completes every query at once.
func standIn(l net.Listener) {
	var greeting []byte
	greeting = message(greeting, 'R', "\x00\x00\x00\x00")
	for _, setting := range []string{"server_version\x0015.0", "client_encoding\x00UTF8", "standard_conforming_strings\x00on"} {
		greeting = message(greeting, 'S', setting+"\x00")
	}
	greeting = message(greeting, 'K', "\x00\x00\x00\x01\x00\x00\x00\x02")
	greeting = message(greeting, 'Z', "I")
	answer := message(message(nil, 'C', "SELECT 0\x00"), 'Z', "I")
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		go func() {
			defer c.Close()
			r := bufio.NewReaderSize(c, 512)
			head := make([]byte, 4)
			if _, err := io.ReadFull(r, head); err != nil {
				return
			}
			if _, err := r.Discard(int(binary.BigEndian.Uint32(head)) - 4); err != nil {
				return
			}
			if _, err := c.Write(greeting); err != nil {
				return
			}
			for {
				kind, err := r.ReadByte()
				if err != nil {
					return
				}
				if _, err := io.ReadFull(r, head); err != nil {
					return
				}
				if _, err := r.Discard(int(binary.BigEndian.Uint32(head)) - 4); err != nil || kind == 'X' {
					return
				}
				if kind == 'Q' || kind == 'S' {
					if _, err := c.Write(answer); err != nil {
						return
					}
				}
			}
		}()
	}
}
