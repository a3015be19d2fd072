package supervise

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// This file runs a command whose exit code is a verdict in a child process. A panic, a fatal error of the Go runtime
// and a signal in C end a process with a status that could be taken for a verdict. So the child sends its exit code
// over the link before it exits, and a child that ends otherwise has no verdict.
//
// The child has the standard input and output of its parent, and its standard error as another descriptor: file
// descriptor 2, to which the runtime writes the trace of a panic, is a pipe to the parent. The child obeys the signals
// that the parent received, which it gets over the link, and not its own: a terminal sends Ctrl-C to both. The child
// ends if the link ends, because the parent was killed.

// VerdictCommand is the first argument of such a child; the arguments of the parent follow.
const VerdictCommand = "supervised"

const (
	stderrFD   = LinkFD + 1
	maxTrace   = 1 << 20 // bytes that are kept of what the child writes to file descriptor 2
	maxSignals = 3       // the child ends by itself at the second or third signal; the parent kills it at the last one
)

// Verdict runs cmd, whose arguments begin with VerdictCommand, and returns its exit code. The error is a *DeathError if
// the child ended without sending its exit code. A signal that ended the child because this process received it ends
// this process, too. forward is called with the function that takes the signals SIGINT and SIGTERM of this process from
// then on, one after the other.
func Verdict(ctx context.Context, cmd *exec.Cmd, stderr *os.File, forward func(func(os.Signal))) (code int, err error) {
	near, far, err := socketPair()
	if err != nil {
		return 0, err
	}
	defer near.Close() //nolint:errcheck // nothing is lost
	defer far.Close()  //nolint:errcheck // it may be closed already
	quits := make(chan os.Signal, 1)
	signal.Notify(quits, syscall.SIGQUIT, syscall.SIGABRT) // by default they end a Go program with exit code 2
	defer signal.Stop(quits)
	received := &received{link: near}
	forward(received.add)
	if err := ctx.Err(); err != nil { // a signal came before
		return 0, err
	}
	trace := &head{most: maxTrace}
	cmd.Stderr, cmd.ExtraFiles, cmd.WaitDelay = trace, []*os.File{far, stderr}, time.Second
	if err := cmd.Start(); err != nil {
		return 0, fmt.Errorf("start the process that runs the command: %w", err)
	}
	_ = far.Close()
	received.process.Store(cmd.Process)
	ended := make(chan struct{})
	defer close(ended)
	go func() {
		for {
			select {
			case s := <-quits:
				_ = cmd.Process.Signal(s) // it writes a trace and ends
			case <-ended:
				return
			}
		}
	}()
	_ = cmd.Wait() // the state says more than the error
	if code, ok := sentCode(near); ok && cmd.ProcessState.Exited() && cmd.ProcessState.ExitCode() == code {
		_, _ = stderr.Write(trace.text) // of GODEBUG, say
		return code, nil
	}
	death := &DeathError{state: cmd.ProcessState, Trace: string(trace.text)}
	if s, ok := death.signal(); ok {
		received.endBy(s)
	}
	return 0, death
}

// received are the signals that this process received and sent to the child.
type received struct {
	link    io.Writer
	process atomic.Pointer[os.Process]
	mu      sync.Mutex // guards the field below
	all     []os.Signal
}

func (r *received) add(s os.Signal) {
	r.mu.Lock()
	r.all = append(r.all, s)
	n := len(r.all)
	r.mu.Unlock()
	_, _ = r.link.Write([]byte{byte(s.(syscall.Signal))})
	if p := r.process.Load(); n >= maxSignals && p != nil {
		_ = p.Kill()
	}
}

// endBy ends this process by the signal that ended the child, if this process received it, or by the last signal if
// that made it kill the child.
func (r *received) endBy(s syscall.Signal) {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := len(r.all)
	switch {
	case slices.Contains(r.all, os.Signal(s)):
	case s == syscall.SIGKILL && n >= maxSignals:
		s = r.all[n-1].(syscall.Signal)
	default:
		return
	}
	signal.Reset(s)
	_ = syscall.Kill(os.Getpid(), s)
	time.Sleep(time.Second) // until it arrives; it does not if it is ignored
}

// sentCode returns the exit code that an ended child has sent.
func sentCode(link *net.UnixConn) (code int, ok bool) {
	var b [1]byte
	_ = link.SetReadDeadline(time.Now().Add(time.Second)) // a process that it started may still have the descriptor
	_, err := io.ReadFull(link, b[:])
	return int(b[0]), err == nil
}

// DeathError is the end of a process without a verdict.
type DeathError struct {
	state *os.ProcessState
	Trace string // what the Go runtime wrote; a panic's message may hold values of rows
}

func (e *DeathError) signal() (s syscall.Signal, ok bool) {
	status, ok := e.state.Sys().(syscall.WaitStatus)
	return status.Signal(), ok && status.Signaled()
}

// place is a line of a trace that names a file of this module and a line of it. It holds no value.
var place = regexp.MustCompile(`(?m)^\t\S*?((?:analysis|cmd|config|internal|proxy|replay|rewrite)/[\w./-]+\.go:\d+)`)

// Error says how the process ended, without the message of a panic.
func (e *DeathError) Error() string {
	const report = "please report it: https://github.com/dpwatch/dpwatch/issues"
	where := ""
	if found := place.FindAllStringSubmatch(e.Trace, 5); found != nil {
		var places []string
		for _, m := range found {
			places = append(places, m[1])
		}
		where = " (" + "at " + strings.Join(places, ", ") + ")"
	}
	what := ""
	switch s, signaled := e.signal(); {
	case signaled && s == syscall.SIGKILL:
		what = "it was killed by SIGKILL, by hand or because the machine is out of memory"
	case signaled && s == syscall.SIGPIPE:
		what = "the reader of its output ended (SIGPIPE)"
	case signaled:
		what = fmt.Sprintf("it was ended by a signal (%v); if nobody sent it, %s", s, report)
	case strings.Contains(e.Trace, "\nSIG") || strings.HasPrefix(e.Trace, "SIG"):
		what = fmt.Sprintf("a signal ended it%s; if nobody sent it, %s", where, report)
	default:
		what = fmt.Sprintf("a fault of dpwatch ended it with exit status %d%s; %s", e.state.ExitCode(), where, report)
	}
	return "no verdict: the process that ran this command ended before it had one: " + what
}

// head keeps the beginning of what is written.
type head struct {
	text []byte
	most int
}

// Write implements [io.Writer].
func (h *head) Write(p []byte) (int, error) {
	h.text = append(h.text, p[:min(len(p), h.most-len(h.text))]...)
	return len(p), nil
}

// Parent is the child's end of the link to the process that started it with Verdict.
type Parent struct {
	conn    net.Conn
	Stderr  *os.File
	Signals chan os.Signal // that the parent received; SIGTERM if it has ended
}

// NewParent takes over the descriptors that Verdict gave to this process.
func NewParent() (*Parent, error) {
	file := os.NewFile(LinkFD, "parent")
	conn, err := net.FileConn(file)
	if err != nil {
		return nil, errors.New("the command " + VerdictCommand + " is internal: leave it out")
	}
	_ = file.Close()
	syscall.CloseOnExec(stderrFD)
	p := &Parent{conn: conn, Stderr: os.NewFile(stderrFD, "stderr"), Signals: make(chan os.Signal, maxSignals)}
	go p.listen()
	return p, nil
}

// orphanGrace is how long a child whose parent was killed may take to clean up.
const orphanGrace = 10 * time.Second

func (p *Parent) listen() {
	var b [1]byte
	for {
		s := syscall.SIGTERM
		_, err := io.ReadFull(p.conn, b[:])
		if err == nil {
			s = syscall.Signal(b[0])
		}
		select {
		case p.Signals <- s:
		default: // it ends already
		}
		if err != nil {
			time.Sleep(orphanGrace)
			os.Exit(1)
		}
	}
}

// Conclude sends the exit code with which this process exits next.
func (p *Parent) Conclude(code int) { _, _ = p.conn.Write([]byte{byte(code)}) }
