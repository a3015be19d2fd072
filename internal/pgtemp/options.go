package pgtemp

import (
	"fmt"
	"io"
	"maps"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Options configures a cluster. The zero value is valid.
type Options struct {
	// BinDir is the directory of initdb and postgres; "" means search (see FindBinDir).
	BinDir string
	// Settings are added to postgresql.conf; they override the defaults of this package.
	Settings map[string]string
	// HBA are lines for pg_hba.conf, placed before those of this package (trust on the socket, SCRAM over TCP).
	HBA []string
	// Env is added to the environment of initdb and the server, which is not the caller's: NAME=value.
	Env []string
	// Log receives the output of initdb and the server; nil discards it. The server's output contains the text of
	// failing statements. Writes are not concurrent. A Log that blocks blocks the server.
	Log io.Writer
	// Getenv reads the environment: DPWATCH_PG_BINDIR, PATH, HOME and TMPDIR; nil means os.Getenv.
	Getenv func(string) string
	// Patterns are the filepath.Glob patterns that FindBinDir tries last; nil means UsualPlaces().
	Patterns []string
}

func (o Options) getenv(name string) string {
	if o.Getenv != nil {
		return o.Getenv(name)
	}
	return os.Getenv(name)
}

func (o Options) log() io.Writer {
	if o.Log != nil {
		return o.Log
	}
	return io.Discard
}

// hba returns the first lines of pg_hba.conf.
func (o Options) hba() (string, error) {
	var b strings.Builder
	for _, line := range o.HBA {
		if strings.ContainsAny(line, "\n\r\x00") {
			return "", fmt.Errorf("pg_hba.conf %q: must be one line", line)
		}
		b.WriteString(line + "\n")
	}
	return b.String(), nil
}

var settingName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_.]*$`)

// config returns the lines to add to postgresql.conf, in a stable order.
func (o Options) config(port int, socketDir string) (string, error) {
	all := map[string]string{
		"listen_addresses":        "127.0.0.1",
		"port":                    strconv.Itoa(port),
		"unix_socket_directories": socketDir,
		"unix_socket_permissions": "0700",
		"fsync":                   "off",
		"synchronous_commit":      "off",
		"full_page_writes":        "off",
		"max_connections":         "200",
		// Files in the data directory, which go with it even if the server is killed.
		"dynamic_shared_memory_type": "mmap",
		"jit":                        "off", // compiling costs more than executing the short statements of an audit
		"random_page_cost":           "1.1", // all data is in memory
		"timezone":                   "UTC",
		"log_timezone":               "UTC",
	}
	maps.Copy(all, o.Settings)
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(all)) {
		value := all[name]
		if !settingName.MatchString(name) {
			return "", fmt.Errorf("setting %q: not the name of a server setting", name)
		}
		if strings.ContainsAny(value, "\n\r\x00") {
			return "", fmt.Errorf("setting %s: its value must be one line", name)
		}
		fmt.Fprintf(&b, "%s = '%s'\n", name, confEscape.Replace(value))
	}
	return b.String(), nil
}

// confEscape quotes a value for postgresql.conf (manual, 20.1.2): both characters are doubled.
var confEscape = strings.NewReplacer(`'`, `''`, `\`, `\\`)
