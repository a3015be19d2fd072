// Package program starts dpwatch as a process of its own and asks its admin port, for tests and benchmarks.
package program

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Process is a running dpwatch process: run or worker.
type Process struct {
	Cmd    *exec.Cmd
	Ended  chan struct{} // closed when the process has ended
	Log    *Journal      // its standard error
	Listen string        // address for clients; "" for a worker
	Admin  string        // address of its admin port
}

// Journal collects what a process writes. It is safe for concurrent use.
type Journal struct {
	mu   sync.Mutex // guards text
	text bytes.Buffer
}

func (j *Journal) Write(p []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.Write(p)
}

func (j *Journal) String() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.String()
}

// Spawn starts a command that runs dpwatch. On Linux it is killed when this process ends.
func Spawn(name string, args ...string) (*Process, error) {
	p := &Process{Cmd: exec.Command(name, args...), Ended: make(chan struct{}), Log: &Journal{}}
	p.Cmd.Stderr = p.Log
	p.Cmd.SysProcAttr = attributes()
	if err := p.Cmd.Start(); err != nil {
		return nil, err
	}
	go func() { _ = p.Cmd.Wait(); close(p.Ended) }()
	return p, nil
}

// Up reports whether the process listens, as its log says, and notes its addresses. It is an error if the process has
// ended.
func (p *Process) Up() (bool, error) {
	for line := range strings.Lines(p.Log.String()) {
		var up struct {
			Message       string `json:"msg"`
			Listen, Admin []string
		}
		if json.Unmarshal([]byte(line), &up) != nil || up.Message != "dpwatch is up" && up.Message != "dpwatch worker is up" {
			continue
		}
		if len(up.Listen) > 0 {
			p.Listen = up.Listen[0]
		}
		if len(up.Admin) > 0 {
			p.Admin = up.Admin[0]
		}
		return true, nil
	}
	select {
	case <-p.Ended:
		return false, fmt.Errorf("dpwatch has ended:\n%s", p.Log)
	default:
		return false, nil
	}
}

// Start starts dpwatch with a configuration and waits until it listens.
func Start(ctx context.Context, program, configuration string, args ...string) (*Process, error) {
	p, err := Spawn(program, append(args, "--config", configuration)...)
	if err != nil {
		return nil, fmt.Errorf("%w: build it with make build, or name it with -dpwatch", err)
	}
	if err := Until(ctx, p.Up); err != nil {
		p.Kill()
		return nil, err
	}
	return p, nil
}

// Until polls until ok returns true or an error, or ctx is done.
func Until(ctx context.Context, ok func() (bool, error)) error {
	for {
		if yes, err := ok(); yes || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// Kill ends the process at once.
func (p *Process) Kill() {
	_ = p.Cmd.Process.Signal(syscall.SIGCONT)
	_ = p.Cmd.Process.Kill()
	<-p.Ended
}

// Stop ends the process as an operator does.
func (p *Process) Stop() {
	_ = p.Cmd.Process.Signal(os.Interrupt)
	<-p.Ended
}

// Fetch returns what the admin port answers.
func (p *Process) Fetch(ctx context.Context, path string) (string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+p.Admin+path, nil)
	if err != nil {
		return "", err
	}
	r, err := http.DefaultClient.Do(request)
	if err != nil {
		return "", err
	}
	defer r.Body.Close()
	body, err := io.ReadAll(r.Body)
	if err == nil && r.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", path, r.Status)
	}
	return string(body), err
}

// Metric returns the sum of the series of a metric, whatever their labels.
func (p *Process) Metric(ctx context.Context, name string) (float64, error) {
	text, err := p.Fetch(ctx, "/metrics")
	if err != nil {
		return 0, err
	}
	sum, there := 0.0, false
	for line := range strings.Lines(text) {
		rest, found := strings.CutPrefix(line, name)
		if !found || rest[0] != ' ' && rest[0] != '{' {
			continue
		}
		value, err := strconv.ParseFloat(strings.TrimSpace(line[strings.LastIndexByte(line, ' ')+1:]), 64)
		if err != nil {
			return 0, err
		}
		sum, there = sum+value, true
	}
	if !there {
		return 0, errors.New("/metrics has no " + name)
	}
	return sum, nil
}
