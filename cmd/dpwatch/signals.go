package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

// untilSignal returns a context that ends at the first SIGINT or SIGTERM. By the time it ends, the next of them ends
// the process at once: nobody who saw the effect of the first (a listener that closed) can send a second in vain, as
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
