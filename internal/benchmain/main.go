// Package benchmain holds the common code of the benchmarks' main packages.
package benchmain

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
)

// Main runs a benchmark with the command line's arguments and exits with 0, or with 1 after an error. Ctrl-C cancels its
// context, so that temporary servers are stopped; a request for help is not an error.
func Main(name string, run func(ctx context.Context, args []string) error) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
		os.Exit(1)
	}
	os.Exit(0)
}
