package tracker

import (
	"encoding/binary"
	"errors"
	"strings"

	"github.com/dpwatch/dpwatch/internal/sqltext"
)

// Startup is the content of a StartupMessage.
type Startup struct {
	Version         uint32 // major version in the high half; 3<<16 for 3.0
	User            string
	Database        string // defaults to the user's name
	ApplicationName string
	// Settings are the settings of the message, from parameters and options, by lower-case name; without user,
	// database, application_name, replication, client_encoding and protocol extensions.
	Settings map[string]string
	// SettingsUncertain is true if the options hold switches that are not supported here.
	SettingsUncertain bool
	// Replication is true if the session requests the replication protocol.
	Replication bool
}

// ParseStartup reads a StartupMessage without its length: the version and name/value pairs (manual, chapter 55.7). It
// fails on malformed messages; rejecting them is left to the server.
func ParseStartup(b []byte) (Startup, error) {
	if len(b) < 5 {
		return Startup{}, errors.New("startup message is too short")
	}
	s := Startup{Version: binary.BigEndian.Uint32(b), Settings: map[string]string{}}
	parameters := map[string]string{}
	r := reader{b: b[4:]}
	for {
		name := r.cstring()
		if r.bad {
			return s, errors.New("startup message does not end with a zero byte")
		}
		if len(name) == 0 {
			break
		}
		parameters[sqltext.Lower(string(name))] = string(r.cstring())
	}
	if !r.done() {
		return s, errors.New("startup message has bytes after its end")
	}
	s.options(parameters["options"])
	for name, value := range parameters {
		s.parameter(name, value)
	}
	if s.Database == "" {
		s.Database = s.User
	}
	return s, nil
}

func (s *Startup) parameter(name, value string) {
	switch name {
	case "user":
		s.User = value
	case "database":
		s.Database = value
	case "application_name":
		s.ApplicationName = value
	case "replication":
		switch sqltext.Lower(value) {
		case "false", "off", "no", "0":
		default:
			s.Replication = true
		}
	case "options", "client_encoding":
	default:
		if !strings.HasPrefix(name, "_pq_.") {
			s.Settings[name] = value
		}
	}
}

// options reads command-line switches: -c name=value, -cname=value and --name=value, split at whitespace; a backslash
// escapes the next byte (pg_split_opts in postinit.c).
func (s *Startup) options(text string) {
	words := splitOptions(text)
	for i := 0; i < len(words); i++ {
		assignment, ok := strings.CutPrefix(words[i], "-c")
		if ok && assignment == "" && i+1 < len(words) {
			i++
			assignment = words[i]
		}
		if !ok {
			assignment, ok = strings.CutPrefix(words[i], "--")
		}
		name, value, assigned := strings.Cut(assignment, "=")
		if !ok || !assigned {
			s.SettingsUncertain = true
			continue
		}
		name = sqltext.Lower(strings.ReplaceAll(name, "-", "_"))
		if name == "application_name" {
			s.ApplicationName = value
			continue
		}
		s.parameter(name, value)
	}
}

func splitOptions(text string) []string {
	var words []string
	var word []byte
	inWord := false
	for i := 0; i < len(text); i++ {
		c := text[i]
		if strings.IndexByte(" \t\n\r\f\v", c) >= 0 {
			if inWord {
				words = append(words, string(word))
			}
			word, inWord = word[:0], false
			continue
		}
		if c == '\\' && i+1 < len(text) {
			i++
			c = text[i]
		}
		word, inWord = append(word, c), true
	}
	if inWord {
		words = append(words, string(word))
	}
	return words
}
