package proxy

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// wire is one raw connection after its startup: without a driver the client uses little CPU time.
type wire struct {
	conn net.Conn
	r    *bufio.Reader
	msg  []byte
	rng  *rand.Rand
}

// dial opens a session without a driver, which would read answers in the background.
func dial(dsn, mode string) (*wire, error) {
	conn, err := greet(dsn)
	if err != nil {
		return nil, err
	}
	w := &wire{conn: conn, r: bufio.NewReaderSize(conn, 64<<10), rng: rand.New(rand.NewPCG(rand.Uint64(), 1))}
	if mode == "prepared" {
		w.msg = message(w.msg[:0], 'P', "s\x00"+selectParam+"\x00\x00\x00")
		w.msg = message(w.msg, 'S', "")
		if err := w.exchange(); err != nil {
			return nil, fmt.Errorf("prepare: %w", err)
		}
	}
	return w, nil
}

const (
	accounts    = 1_000_000
	selectParam = "SELECT abalance FROM pgbench_accounts WHERE aid = $1"
)

func message(dst []byte, kind byte, body string) []byte {
	dst = append(dst, kind)
	dst = binary.BigEndian.AppendUint32(dst, uint32(len(body)+4))
	return append(dst, body...)
}

// transact runs one select-only transaction, like pgbench -S in the given mode.
func (w *wire) transact(mode string) error {
	aid := fmt.Appendf(nil, "%d", 1+w.rng.IntN(accounts))
	w.msg = w.msg[:0]
	switch mode {
	case "simple":
		w.msg = message(w.msg, 'Q', "SELECT abalance FROM pgbench_accounts WHERE aid = "+string(aid)+";\x00")
		return w.exchange()
	case "extended":
		w.msg = message(w.msg, 'P', "\x00"+selectParam+"\x00\x00\x00")
	}
	name := ""
	if mode == "prepared" {
		name = "s"
	}
	bind := "\x00" + name + "\x00\x00\x00\x00\x01" + string(binary.BigEndian.AppendUint32(nil, uint32(len(aid)))) + string(aid) + "\x00\x00"
	w.msg = message(w.msg, 'B', bind)
	w.msg = message(w.msg, 'D', "P\x00")
	w.msg = message(w.msg, 'E', "\x00\x00\x00\x00\x00")
	w.msg = message(w.msg, 'S', "")
	return w.exchange()
}

// exchange sends w.msg and reads until ReadyForQuery.
func (w *wire) exchange() error {
	if _, err := w.conn.Write(w.msg); err != nil {
		return err
	}
	return w.untilReady()
}

func (w *wire) untilReady() error {
	for {
		header, err := w.r.Peek(5)
		if err != nil {
			return err
		}
		kind, size := header[0], int(binary.BigEndian.Uint32(header[1:]))
		if kind == 'E' {
			return errors.New("the server answered with an error")
		}
		if _, err := w.r.Discard(1 + size); err != nil || kind == 'Z' {
			return err
		}
	}
}

// cell holds the results of one target in one mode with one number of clients.
type cell struct {
	transactions uint64
	elapsed      time.Duration
	cpu          time.Duration
	latencies    []time.Duration
}

func (c *cell) tps() float64 { return float64(c.transactions) / c.elapsed.Seconds() }

func (c *cell) quantile(q float64) time.Duration {
	slices.Sort(c.latencies)
	return at(c.latencies, q)
}

// maxLatencies bounds the latencies stored per cell.
const maxLatencies = 400_000

// rotate runs n clients that all stay on one target for a slice, then all move to the next, for a total of seconds.
func rotate(ctx context.Context, targets []*target, mode string, n int, o options) (map[string]*cell, error) {
	cells := map[string]*cell{}
	wires := make([][]*wire, len(targets))
	defer func() {
		for _, ws := range wires {
			for _, w := range ws {
				_ = w.conn.Close()
			}
		}
	}()
	for i, t := range targets {
		cells[t.name] = &cell{}
		for range n {
			w, err := dial(t.dsn, mode)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", t.name, err)
			}
			wires[i] = append(wires[i], w)
		}
	}
	end := time.Now().Add(time.Duration(o.seconds * float64(time.Second)))
	for round := 0; time.Now().Before(end) && ctx.Err() == nil; round++ {
		for _, i := range rand.Perm(len(targets)) { // so that no target always follows the same one
			warm := round < 2
			if err := slice(targets[i], cells[targets[i].name], wires[i], mode, o.slice, warm); err != nil {
				return nil, fmt.Errorf("%s: %w", targets[i].name, err)
			}
		}
	}
	return cells, ctx.Err()
}

func slice(t *target, c *cell, wires []*wire, mode string, d time.Duration, warm bool) error {
	var stop atomic.Bool
	var wg sync.WaitGroup
	errs := make([]error, len(wires))
	lats := make([][]time.Duration, len(wires))
	counts := make([]uint64, len(wires))
	cpu := t.cpu()
	began := time.Now()
	for i, w := range wires {
		wg.Go(func() {
			for !stop.Load() {
				start := time.Now()
				if err := w.transact(mode); err != nil {
					if !errors.Is(err, io.EOF) || !stop.Load() {
						errs[i] = err
					}
					return
				}
				counts[i]++
				lats[i] = append(lats[i], time.Since(start))
			}
		})
	}
	time.Sleep(d)
	stop.Store(true)
	wg.Wait()
	elapsed := time.Since(began)
	if warm {
		return errors.Join(errs...)
	}
	c.elapsed += elapsed
	c.cpu += t.cpu() - cpu
	for i := range wires {
		c.transactions += counts[i]
		if room := maxLatencies - len(c.latencies); room > 0 {
			c.latencies = append(c.latencies, lats[i][:min(room, len(lats[i]))]...)
		}
	}
	return errors.Join(errs...)
}
