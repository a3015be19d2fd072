package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
)

// request is a statement for a child, a line of JSON.
type request struct {
	SQL        string    `json:"sql"`
	Parameters []*string `json:"parameters"`
	Describe   bool      `json:"describe"` // only the columns are wanted; the parameters are not known yet
}

// answer is what a child answers to a request, a line of JSON.
type answer struct {
	Columns []field `json:"columns"`
	Rows    [][]any `json:"rows"`
	Error   string  `json:"error"`
	Code    string  `json:"code"` // SQLSTATE of the error
	tag     string  // command tag of an answer that is the gateway's; "" = SELECT
}

// field is a column; its type is bool, int8, float8 or text.
type field struct {
	Name string `json:"name"`
	Type string `json:"type"`
}

// failure is an error with an SQLSTATE and a message that the client may read.
type failure struct{ code, message string }

func (f *failure) Error() string { return f.message }

// child is a process that answers requests, one at a time.
type child struct {
	again func() (*child, error) // starts one like it
	cmd   *exec.Cmd
	in    io.WriteCloser
	out   *bufio.Reader
}

// pool holds the children that are idle. Each serves a statement at a time, of any session.
type pool chan *child

// startPool starts n children, which end with ctx.
func startPool(ctx context.Context, command []string, source string, n int) (pool, error) {
	if len(command) == 0 {
		return nil, errors.New("-engine is missing: write the program that answers the queries")
	}
	p := make(pool, max(n, 1))
	for range cap(p) {
		c, err := start(ctx, command, append(os.Environ(), "SOURCE="+source)) // where it finds the source
		if err != nil {
			p.stop()
			return nil, err
		}
		p <- c
	}
	return p, nil
}

func start(ctx context.Context, command, environ []string) (*child, error) {
	cmd := exec.CommandContext(ctx, command[0], command[1:]...) //nolint:gosec // the flag -engine
	cmd.Env, cmd.Stderr = environ, os.Stderr
	in, failed := cmd.StdinPipe()
	out, err := cmd.StdoutPipe()
	again := func() (*child, error) { return start(ctx, command, environ) }
	return &child{again, cmd, in, bufio.NewReader(out)}, errors.Join(failed, err, cmd.Start())
}

// stop ends the children that are idle and waits for their end.
func (p pool) stop() {
	for len(p) > 0 {
		(<-p).end()
	}
}

func (c *child) end() {
	_ = c.cmd.Process.Kill()
	_ = c.cmd.Wait()
}

// answer gives a request to the next child that is idle. A child that ctx interrupts, or that gives no answer, ends,
// and another one takes its place.
func (p pool) answer(ctx context.Context, r request) (a answer, err error) {
	var c *child
	select {
	case c = <-p:
	case <-ctx.Done():
		return answer{}, ctx.Err()
	}
	process := c.cmd.Process
	stop := context.AfterFunc(ctx, func() { _ = process.Kill() })
	err = c.ask(r, &a)
	if !stop() || err != nil {
		c.end()
		if ctx.Err() != nil {
			err = ctx.Err()
		}
		if fresh, failed := c.again(); failed == nil {
			c = fresh
		}
		p <- c // if it cannot be started, the next request tries again
		return answer{}, err
	}
	p <- c
	if a.Error != "" {
		return answer{}, &failure{a.Code, a.Error}
	}
	return a, nil
}

func (c *child) ask(r request, a *answer) error {
	line, err := json.Marshal(r)
	if err == nil {
		_, err = c.in.Write(append(line, '\n'))
	}
	if err == nil {
		line, err = c.out.ReadBytes('\n')
	}
	if err == nil {
		d := json.NewDecoder(bytes.NewReader(line))
		d.UseNumber()
		err = d.Decode(a)
	}
	if err != nil {
		return &failure{"58000", "the engine's process gave no answer in JSON"}
	}
	return nil
}
