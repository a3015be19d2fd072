package main

import (
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// TestMoved requires that a former command names one that there is, and that no command of that name is left.
func TestMoved(t *testing.T) {
	root := rootCommand(environment{})
	for _, m := range moved {
		call(t, "", strings.Fields(m.former)...).want(t, exitFailure, "dpwatch "+m.former+" is now: dpwatch "+m.now)
		for _, now := range strings.Split(m.now, ", or ") {
			cmd, rest, err := root.Find(strings.Fields(now))
			if err != nil || cmd == root || len(rest) > 0 && strings.HasPrefix(rest[0], "--") && cmd.Flags().Lookup(rest[0][2:]) == nil {
				t.Errorf("%s: %v, %v", now, rest, err)
			}
		}
	}
	call(t, "", "report", "3f9c", "--config", "none.yaml").want(t, exitFailure, "none.yaml")
}

// TestNumberOfCommands bounds what users must know.
func TestNumberOfCommands(t *testing.T) {
	n := 0
	var count func(*cobra.Command)
	count = func(cmd *cobra.Command) {
		switch {
		case cmd.Hidden || cmd.Name() == "help":
		case cmd.HasSubCommands():
			for _, c := range cmd.Commands() {
				count(c)
			}
		default:
			n++
		}
	}
	count(rootCommand(environment{}))
	if n > 30 {
		t.Errorf("%d commands: take one away, or make it a flag of another", n)
	}
}
