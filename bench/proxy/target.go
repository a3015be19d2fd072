package proxy

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/prometheus/procfs"
)

// target is one path to the server.
type target struct {
	name string
	dsn  string
	pid  int       // of the proxy; 0 = direct
	cmd  *exec.Cmd // nil if another process started it
	dir  string
	// rival is the target to which this one's figures are compared.
	rival string
}

// cpu returns the CPU time of the proxy, user and system: the sum over its threads, from schedstat.
func (t *target) cpu() (total time.Duration) {
	if t.pid == 0 {
		return 0
	}
	threads, _ := procfs.AllThreads(t.pid)
	for _, thread := range threads {
		stat, _ := thread.Schedstat() // zero if the thread has ended
		total += time.Duration(stat.RunningNanoseconds)
	}
	return total
}

// rss returns the resident memory of the proxy in bytes.
func (t *target) rss() int {
	process, err := procfs.NewProc(t.pid)
	if err != nil {
		return 0
	}
	stat, _ := process.Stat()
	return stat.ResidentMemory()
}

func (t *target) stop() {
	if t.cmd == nil {
		return
	}
	_ = t.cmd.Process.Signal(syscall.SIGTERM)
	done := make(chan struct{})
	go func() { _ = t.cmd.Wait(); close(done) }()
	select {
	case <-done:
	case <-time.After(10 * time.Second):
		_ = t.cmd.Process.Kill()
		<-done
	}
	if t.dir != "" {
		_ = os.RemoveAll(t.dir)
	}
}

// place returns a free port and a new directory for a proxy's files.
func place() (port int, dir string, err error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, "", err
	}
	defer l.Close()
	dir, err = os.MkdirTemp("", "benchproxy-*")
	return l.Addr().(*net.TCPAddr).Port, dir, err
}

func dsn(addr string, secure bool) string {
	mode := "disable"
	if secure {
		mode = "require"
	}
	return "postgres://postgres@" + addr + "/postgres?sslmode=" + mode + "&application_name=bench"
}

// startDpwatch runs the sidecar in front of the server.
func startDpwatch(ctx context.Context, binary string, v variant, upstream int, shadow string) (*target, error) {
	port, dir, err := place()
	if err != nil {
		return nil, err
	}
	path := filepath.Join(dir, "dpwatch.yaml")
	text := fmt.Sprintf(`proxy: {listen: "127.0.0.1:%d", upstream: "127.0.0.1:%d", capture: %t, max_sessions: 20000%s}
privacy: {protected: [%s]}
%s`, port, upstream, v.capture, v.proxy, v.protected, strings.ReplaceAll(cmp.Or(v.more, "shadow: {dsn: SHADOW, statement_timeout: 5s}\n"), "SHADOW", strconv.Quote(shadow)))
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		return nil, err
	}
	t := &target{name: v.name, dsn: dsn("127.0.0.1:"+strconv.Itoa(port), v.secure), dir: dir, rival: "pgbouncer"}
	t.cmd = exec.Command(binary, "run", "--config", path)
	t.cmd.Env = append(os.Environ(), v.env...)
	return t, t.start(ctx)
}

// bouncerTLS configures PgBouncer's TLS; zero = none.
type bouncerTLS struct {
	id     identity // shown to clients, which must use TLS
	server string   // server_tls_sslmode
}

// startPgBouncer runs PgBouncer in session pooling; nil if it is not installed.
func startPgBouncer(ctx context.Context, upstream int, secure bouncerTLS) (*target, error) {
	binary, err := exec.LookPath("pgbouncer")
	if err != nil {
		if binary, err = exec.LookPath("/usr/sbin/pgbouncer"); err != nil {
			return nil, nil
		}
	}
	port, dir, err := place()
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		return nil, err
	}
	uid, gid, err := bouncerUser()
	if err != nil {
		return nil, err
	}
	ini := fmt.Sprintf(`[databases]
* = host=127.0.0.1 port=%d user=postgres
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = %d
unix_socket_dir =
auth_type = any
pool_mode = session
max_client_conn = 20000
default_pool_size = 20000
server_login_retry = 1
ignore_startup_parameters = extra_float_digits
`, upstream, port)
	if secure.server != "" {
		ini += fmt.Sprintf("client_tls_sslmode = require\nclient_tls_cert_file = %s\nclient_tls_key_file = %s\nserver_tls_sslmode = %s\n",
			filepath.Join(dir, "server.crt"), filepath.Join(dir, "server.key"), secure.server)
		if err := give(secure.id, dir, uid, gid); err != nil {
			return nil, err
		}
	}
	path := filepath.Join(dir, "pgbouncer.ini")
	if err := os.WriteFile(path, []byte(ini), 0o644); err != nil {
		return nil, err
	}
	t := &target{name: "pgbouncer", dsn: dsn("127.0.0.1:"+strconv.Itoa(port), secure.server != ""), dir: dir}
	t.rival = t.name
	t.cmd = exec.Command(binary, "-q", path)
	if os.Geteuid() == 0 {
		t.cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}
	}
	return t, t.start(ctx)
}

// bouncerUser returns the user for PgBouncer, which refuses to run as root.
func bouncerUser() (uid, gid int, err error) {
	if os.Geteuid() != 0 {
		return os.Geteuid(), os.Getegid(), nil
	}
	who, err := user.Lookup("postgres")
	if err != nil {
		return 0, 0, err
	}
	if uid, err = strconv.Atoi(who.Uid); err != nil {
		return 0, 0, err
	}
	gid, err = strconv.Atoi(who.Gid)
	return uid, gid, err
}

// startCommand runs another proxy.
func startCommand(ctx context.Context, name, command string, upstream int) (*target, error) {
	port, dir, err := place()
	if err != nil {
		return nil, err
	}
	listen := "127.0.0.1:" + strconv.Itoa(port)
	words := strings.Fields(strings.NewReplacer("{listen}", listen, "{upstream}", "127.0.0.1:"+strconv.Itoa(upstream)).Replace(command))
	if len(words) == 0 {
		return nil, fmt.Errorf("--extra %s: no command", name)
	}
	t := &target{name: name, dsn: dsn(listen, false), dir: dir, rival: "pgbouncer", cmd: exec.Command(words[0], words[1:]...)}
	return t, t.start(ctx)
}

// start runs the command and waits until a query succeeds.
func (t *target) start(ctx context.Context) error {
	var out bytes.Buffer
	t.cmd.Stdout, t.cmd.Stderr = &out, &out
	if t.cmd.SysProcAttr == nil {
		t.cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	t.cmd.SysProcAttr.Setsid = true // sched_autogroup_enabled gives each session the same share of the processors
	if err := t.cmd.Start(); err != nil {
		return fmt.Errorf("%s: %w", t.name, err)
	}
	t.pid = t.cmd.Process.Pid
	var last error
	for range 100 {
		conn, err := pgx.Connect(ctx, t.dsn)
		if err == nil {
			_, err = conn.Exec(ctx, "SELECT 1")
			_ = conn.Close(ctx)
		}
		if err == nil {
			return nil
		}
		last = err
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(100 * time.Millisecond):
		}
	}
	t.stop()
	return fmt.Errorf("%s accepts no query: %w\n%s", t.name, last, out.String())
}
