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
	cleansUp atomic.Bool // the command removes what it made before it ends
}

// removes says that the command removes what it made when its context ends: a second signal then does not end the process,
// a third one does. Programs that end others send two in quick succession, as timeout does.
func (i *interrupts) removes() { i.cleansUp.Store(true) }

// untilSignal returns a context that ends at the first SIGINT or SIGTERM. By the time it ends, the next of them ends
// the process at once, or the next but one after removes: nobody who saw the effect of the first (a client that was refused)
// can send a second in vain, as with [signal.NotifyContext], which gives the signals back some time after its context ended.
func (i *interrupts) untilSignal(parent context.Context, stderr io.Writer) context.Context {
	ctx, cancel := context.WithCancel(parent)
	signals := make(chan os.Signal, 3)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		<-signals
		if i.cleansUp.Load() {
			cancel()
			<-signals
			fmt.Fprintln(stderr, "dpwatch: removing what was made; another signal ends the process at once")
		}
		signal.Stop(signals) // all that came until here is in the channel, the next one has its default effect
		select {
		case next := <-signals:
			_ = syscall.Kill(os.Getpid(), next.(syscall.Signal))
		default:
		}
		cancel()
	}()
	return ctx
}

// outlive lets the process outlive what says nothing about its work: the end of whoever reads its log (SIGPIPE, by which a
// write to a broken standard error ends a Go program), and SIGHUP, of a terminal that closed or of a tool that rotates
// logs, which calls hup. Processes that it starts begin with the defaults. Stop gives the defaults back.
func outlive(hup func()) (stop func()) {
	pipe, hups := make(chan os.Signal, 1), make(chan os.Signal, 1)
	signal.Notify(pipe, syscall.SIGPIPE) // nobody reads it: being asked for is what keeps the process alive
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
