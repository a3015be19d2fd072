package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"
)

// interrupts ends a command at the first SIGINT or SIGTERM.
type interrupts struct {
	cleansUp atomic.Bool                     // the command cleans up before it ends
	child    atomic.Pointer[func(os.Signal)] // takes the signals instead: the command runs in a child process
	sent     chan os.Signal                  // of such a child: what its parent received counts, and not its own signals; nil elsewhere
}

// forward passes the signals to a child process from now on.
func (i *interrupts) forward(child func(os.Signal)) { i.child.Store(&child) }

// removes records that the command cleans up when its context ends. Then a third signal, not the second, ends the
// process, because programs such as timeout send two signals in quick succession.
func (i *interrupts) removes() { i.cleansUp.Store(true) }

// untilSignal returns a context that ends at the first SIGINT or SIGTERM. When it ends, the default action is already
// restored, so that the next signal (after removes, the one after it) ends the process. [signal.NotifyContext] restores
// it only some time after its context has ended: a second signal, sent because the effect of the first was seen (a
// refused client), could be lost.
func (i *interrupts) untilSignal(parent context.Context, stderr io.Writer) context.Context {
	ctx, cancel := context.WithCancel(parent)
	own := make(chan os.Signal, 3)
	signal.Notify(own, os.Interrupt, syscall.SIGTERM)
	signals := own
	if i.sent != nil {
		signals = i.sent
	}
	go func() {
		first := <-signals
		for child := i.child.Load(); child != nil; first = <-signals {
			(*child)(first)
		}
		if i.cleansUp.Load() {
			cancel()
			<-signals
			fmt.Fprintln(stderr, "dpwatch: removing what was created; another signal ends the process at once")
		}
		if i.sent != nil {
			cancel()
			next := <-signals
			signal.Stop(own)
			_ = syscall.Kill(os.Getpid(), next.(syscall.Signal))
			return
		}
		signal.Stop(own) // earlier signals are in the channel; the next one has its default action
		select {
		case next := <-signals:
			_ = syscall.Kill(os.Getpid(), next.(syscall.Signal))
		default:
		}
		cancel()
	}()
	return ctx
}

// outlive keeps the process running on signals that do not concern its work: SIGPIPE, with which a write to a broken
// standard error ends a Go program, when the log's reader ends; and SIGHUP, from a closed terminal or a log rotation
// tool, which calls hup. Child processes start with the default actions. Stop restores them.
func outlive(hup func()) (stop func()) {
	pipe, hups := make(chan os.Signal, 1), make(chan os.Signal, 1)
	signal.Notify(pipe, syscall.SIGPIPE) // never read: registering for the signal keeps the process running
	signal.Notify(hups, syscall.SIGHUP)
	go func() {
		for range hups {
			hup()
		}
	}()
	return func() {
		signal.Stop(pipe)
		signal.Stop(hups)
		close(hups)
	}
}
