// Command dpwatch audits differential privacy in production: a PostgreSQL proxy that replays the queries it sees on
// neighbouring copies of the data and reports how much each of them really leaks.
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/dpwatch/dpwatch/internal/supervise"
)

func main() {
	if args := os.Args[1:]; len(args) > 0 && args[0] == supervise.VerdictCommand {
		runSupervised(args[1:])
	}
	var signals interrupts
	os.Exit(run(signals.untilSignal(context.Background(), os.Stderr), os.Args[1:], environment{
		Getenv: os.Getenv, Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, Executable: os.Executable, Removes: signals.removes,
		Supervise: func(ctx context.Context, trace bool) (int, error) { return superviseSelf(ctx, &signals, trace) },
	}))
}

// run runs the command line and returns the exit code.
func run(ctx context.Context, args []string, env environment) int {
	if err := checkMoved(args); err != nil {
		fmt.Fprintln(env.Stderr, "dpwatch: "+err.Error())
		return exitFailure
	}
	root := rootCommand(env)
	root.SetArgs(args)
	root.SetIn(env.Stdin)
	root.SetOut(env.Stdout)
	root.SetErr(env.Stderr)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return exitDone
	}
	if text := err.Error(); text != "" {
		fmt.Fprintln(env.Stderr, "dpwatch: "+text)
	}
	return exitCode(err)
}
