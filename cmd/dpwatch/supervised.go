package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"

	"github.com/spf13/cobra"

	"github.com/dpwatch/dpwatch/internal/supervise"
	"github.com/dpwatch/dpwatch/internal/terminal"
)

// supervised makes a command whose exit code is a verdict run in a child process, so that a crash is no verdict. Errors
// of usage need no child. trace reports whether the trace of a panic, which may hold values of rows, is shown.
func supervised(env environment, cmd *cobra.Command, trace func(cmd *cobra.Command) bool) *cobra.Command {
	here := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if env.Supervise == nil {
			return here(cmd, args)
		}
		code, err := env.Supervise(cmd.Context(), trace(cmd))
		if err == nil && code != exitDone {
			err = &exitError{code: code} // the child has printed its text
		}
		return err
	}
	return cmd
}

// showsValues reports whether a flag lets a command show values of rows.
func showsValues(flag string) func(cmd *cobra.Command) bool {
	return func(cmd *cobra.Command) bool { return cmd.Flags().Lookup(flag).Value.String() == "true" }
}

// ownData is for commands that read no data of users.
func ownData(*cobra.Command) bool { return true }

// othersData is for commands that never show values of rows.
func othersData(*cobra.Command) bool { return false }

// superviseSelf runs the command line of this process in a child process, and returns its exit code.
func superviseSelf(ctx context.Context, signals *interrupts, trace bool) (code int, err error) {
	binary, err := os.Executable()
	if err != nil {
		return 0, err
	}
	cmd := exec.Command(binary, append([]string{supervise.VerdictCommand}, os.Args[1:]...)...) // #nosec G204 -- the arguments of this process
	cmd.Stdin, cmd.Stdout = os.Stdin, os.Stdout
	code, err = supervise.Verdict(ctx, cmd, os.Stderr, signals.forward)
	var death *supervise.DeathError
	if !errors.As(err, &death) {
		return code, err
	}
	if terminal.Interactive(os.Stderr) {
		fmt.Fprintln(os.Stderr) // a progress bar may be in the line
	}
	switch {
	case trace:
		fmt.Fprint(os.Stderr, death.Trace)
	case death.Trace != "":
		fmt.Fprintln(os.Stderr, "dpwatch: the trace of the fault is not shown, because it may hold values of rows")
	}
	return code, err
}

// runSupervised is that child process.
func runSupervised(args []string) {
	parent, err := supervise.NewParent()
	if err != nil {
		fmt.Fprintln(os.Stderr, "dpwatch:", err)
		os.Exit(exitFailure)
	}
	signals := interrupts{sent: parent.Signals}
	code := run(signals.untilSignal(context.Background(), parent.Stderr), args, environment{
		Getenv: os.Getenv, Stdin: os.Stdin, Stdout: os.Stdout, Stderr: parent.Stderr, Executable: os.Executable, Removes: signals.removes,
	})
	parent.Conclude(code)
	os.Exit(code)
}
