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
	// Replication is true if the session requests physical replication, in which the server accepts no queries. A
	// session for logical replication (replication=database) is one like others.
	Replication bool
}

// ParseStartup reads a StartupMessage without its length: the version and name/value pairs (manual, chapter 55.7). It
// fails on malformed messages; rejecting them is left to the server.
func ParseStartup(b []byte) (Startup, error) {
	if len(b) < 5 {
		return Startup{}, errors.New("startup message is too short")
	}
	s := Startup{Version: binary.BigEndian.Uint32(b), Settings: map[string]string{}}
	var parameters [][2]string
	r := reader{b: b[4:]}
	for {
		name := r.cstring()
		if r.bad {
			return s, errors.New("startup message does not end with a zero byte")
		}
		if len(name) == 0 {
			break
		}
		parameters = append(parameters, [2]string{string(name), string(r.cstring())})
	}
	if !r.done() {
		return s, errors.New("startup message has bytes after its end")
	}
	options := "" // the last ones, which come before all settings
	for _, p := range parameters {
		if p[0] == "options" {
			options = p[1]
		}
	}
	s.options(options)
	for _, p := range parameters {
		s.parameter(p[0], p[1])
	}
	if s.Database == "" {
		s.Database = s.User
	}
	return s, nil
}

// parameter reads a name and its value. The server compares these names byte by byte: those in another case are names
// of settings (ProcessStartupPacket in postmaster.c).
func (s *Startup) parameter(name, value string) {
	switch name {
	case "user":
		s.User = value
	case "database":
		s.Database = value
	case "replication": // the server ends the session unless it is a Boolean value or "database"
		on, _ := sqltext.ParseBool(value)
		s.Replication = on && strings.TrimSpace(value) == value
	case "options":
	default:
		if !strings.HasPrefix(name, "_pq_.") {
			s.set(name, value)
		}
	}
}

// set sets a setting.
func (s *Startup) set(name, value string) {
	switch name = sqltext.Lower(name); name {
	case "application_name":
		s.ApplicationName = value
	case "client_encoding":
	default:
		s.Settings[name] = value
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
		s.set(strings.ReplaceAll(name, "-", "_"), value)
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
