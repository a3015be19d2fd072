package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

// untilSignal returns a context that ends at the first SIGINT or SIGTERM. By the time it ends, the next of them ends
// the process at once: nobody who saw the effect of the first (a client that was refused) can send a second in vain, as
// with [signal.NotifyContext], which gives the signals back some time after its context ended.
func untilSignal(parent context.Context) context.Context {
	ctx, cancel := context.WithCancel(parent)
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		<-signals
		signal.Stop(signals) // all that came until here is in the channel, the next one has its default effect
		select {
		case second := <-signals:
			_ = syscall.Kill(os.Getpid(), second.(syscall.Signal))
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
