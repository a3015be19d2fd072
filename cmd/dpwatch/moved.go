package main

import (
	"errors"
	"slices"
	"strings"
)

// moved are former commands and flags, with what replaces them.
var moved = []struct{ former, now string }{
	{"accept", "audits accept"},
	{"reproduce", "audits reproduce"},
	{"audits show", "explain --full"},
	{"alert test", "alerts test"},
	{"alert", "alerts test"},
	{"alerts show", "alerts list ID"},
	{"report key", "report --new-key FILE"},
	{"report verify", "report --verify PATH"},
	{"health", "status --alive, or status --ready"},
	{"bundle", "doctor --bundle FILE"},
	{"config schema", "config print --schema"},
	{"config check --connect", "doctor"},
	{"neighbours refresh", "neighbours create --replace"},
	{"analyze --header", "analyze --format csv"},
}

// checkMoved returns an error if a command line is that of a former command.
func checkMoved(args []string) error {
	for _, m := range moved {
		words := strings.Fields(m.former)
		flag := words[len(words)-1]
		if strings.HasPrefix(flag, "-") {
			if words = words[:len(words)-1]; !slices.ContainsFunc(args, func(arg string) bool { return arg == flag || strings.HasPrefix(arg, flag+"=") }) {
				continue
			}
		}
		if len(args) >= len(words) && slices.Equal(args[:len(words)], words) {
			return errors.New("dpwatch " + m.former + " is now: dpwatch " + m.now)
		}
	}
	return nil
}
