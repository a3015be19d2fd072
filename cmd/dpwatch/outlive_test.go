package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"
)

// Neither a log without a reader nor SIGHUP ends the process or a session.
func TestRunOutlives(t *testing.T) {
	t.Parallel()
	direct := copies(t)
	cfg, err := pgx.ParseConfig(direct)
	if err != nil {
		t.Fatal(err)
	}
	path := file(t, "dpwatch.yaml", fmt.Sprintf(`
proxy: {listen: 127.0.0.1:0, upstream: "%s:%d"}
shadow: {dsn: %q}
privacy: {protected: [public.people]}
`, cfg.Host, cfg.Port, direct))
	log, stderr, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	cmd := program(context.Background(), "run", "--config", path)
	cmd.Stderr = stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_ = stderr.Close()
	ended := make(chan struct{})
	go func() { _ = cmd.Wait(); close(ended) }()
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-ended
	})
	lines := bufio.NewScanner(log)
	await := func(text string) []byte {
		for lines.Scan() {
			if strings.Contains(lines.Text(), text) {
				return lines.Bytes()
			}
		}
		t.Fatalf("the log ended before %q", text)
		return nil
	}
	var up struct{ Listen []string }
	if err := json.Unmarshal(await("dpwatch is up"), &up); err != nil {
		t.Fatal(err)
	}
	s := &sidecar{direct: direct, addr: up.Listen[0]}
	conn := s.connect(t)
	if err := cmd.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	await("the configuration was read again")
	exec0(t, conn, "SELECT 1")
	_ = log.Close()
	for range 20 { // each one is logged
		bad, err := net.Dial("tcp", s.addr)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := bad.Write([]byte("GET / HTTP/1.0\r\n\r\n")); err != nil {
			t.Fatal(err)
		}
		if n, err := bad.Read(make([]byte, 1)); n != 0 || err == nil { // closed without an answer, and logged
			t.Errorf("read %d bytes, %v; want the end", n, err)
		}
		_ = bad.Close()
	}
	exec0(t, conn, "SELECT 1")
	exec0(t, s.connect(t), "SELECT 1")
	select {
	case <-ended:
		t.Errorf("it ended: %v", cmd.ProcessState)
	default:
	}
}
