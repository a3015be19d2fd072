package setup

import (
	"context"
	"io"
	"slices"
)

// Version is the version of this build.
var Version = "devel"

// Environment is what a command uses of the process.
type Environment struct {
	Getenv     func(string) string
	Stdin      io.Reader
	Stdout     io.Writer
	Stderr     io.Writer
	Executable func() (string, error) // the binary to run as the auditor
	Removes    func()                 // called by a command that cleans up when it is interrupted; may be nil
	// Supervise runs the command line of this process again in a child process, and returns its exit code; trace = a
	// panic's trace is shown. nil = this process itself runs the command.
	Supervise func(ctx context.Context, trace bool) (code int, err error)
}

// auditorVariables are the environment variables that the auditor process receives: those of the Go runtime, time zones
// and certificate authorities. Its configuration comes over the link, so its environment needs no secrets.
var auditorVariables = []string{
	"TZ", "ZONEINFO", "SSL_CERT_FILE", "SSL_CERT_DIR",
	"GODEBUG", "GOGC", "GOMEMLIMIT", "GOMAXPROCS", "GOTRACEBACK", "GORACE", "GOCOVERDIR",
}

// AuditorEnvironment returns the environment of the auditor process. It is never nil, which would mean this process's
// environment.
func AuditorEnvironment(getenv func(string) string) []string {
	environ := make([]string, 0, len(auditorVariables))
	for _, name := range auditorVariables {
		if value := getenv(name); value != "" {
			environ = append(environ, name+"="+value)
		}
	}
	return environ
}

// connectionVariables are the environment variables that complete a connection string in other commands (pgx, libpq).
var connectionVariables = []string{
	"PGHOST", "PGPORT", "PGDATABASE", "PGUSER", "PGPASSWORD", "PGPASSFILE", "PGSERVICE", "PGSERVICEFILE", "PGAPPNAME", "PGOPTIONS",
	"PGCONNECT_TIMEOUT", "PGTARGETSESSIONATTRS", "PGTZ", "PGSSLMODE", "PGSSLROOTCERT", "PGSSLCERT", "PGSSLKEY", "PGSSLPASSWORD", "PGSSLSNI",
	"PGSSLNEGOTIATION", "PGCHANNELBINDING", "PGMINPROTOCOLVERSION", "PGMAXPROTOCOLVERSION",
}

// IgnoredVariables returns the names of the connection variables that are set but not passed to the auditor.
func IgnoredVariables(getenv func(string) string) []string {
	return slices.DeleteFunc(slices.Clone(connectionVariables), func(name string) bool { return getenv(name) == "" })
}
