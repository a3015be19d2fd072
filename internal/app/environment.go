package app

import (
	"io"
	"slices"
)

// Version is that of this build.
var Version = "devel"

// Environment is what a command may use of the process.
type Environment struct {
	Getenv     func(string) string
	Stdin      io.Reader
	Stdout     io.Writer
	Stderr     io.Writer
	Executable func() (string, error) // the binary to run as the auditor
	Removes    func()                 // says that the command removes what it made when it is interrupted; may be nil
}

// auditorVariables are the Environment variables that the auditor process gets: those of the Go runtime and of its time zones
// and certificate authorities. Its configuration comes over the link, so that no secret has to be in its environment.
var auditorVariables = []string{
	"TZ", "ZONEINFO", "SSL_CERT_FILE", "SSL_CERT_DIR",
	"GODEBUG", "GOGC", "GOMEMLIMIT", "GOMAXPROCS", "GOTRACEBACK", "GORACE", "GOCOVERDIR",
}

// auditorEnvironment returns the Environment of the auditor process; it is never nil, which would mean this process's own.
func auditorEnvironment(getenv func(string) string) []string {
	environ := make([]string, 0, len(auditorVariables))
	for _, name := range auditorVariables {
		if value := getenv(name); value != "" {
			environ = append(environ, name+"="+value)
		}
	}
	return environ
}

// connectionVariables are the Environment variables that complete a connection string in other commands (pgx, libpq).
var connectionVariables = []string{
	"PGHOST", "PGPORT", "PGDATABASE", "PGUSER", "PGPASSWORD", "PGPASSFILE", "PGSERVICE", "PGSERVICEFILE", "PGAPPNAME", "PGOPTIONS",
	"PGCONNECT_TIMEOUT", "PGTARGETSESSIONATTRS", "PGTZ", "PGSSLMODE", "PGSSLROOTCERT", "PGSSLCERT", "PGSSLKEY", "PGSSLPASSWORD", "PGSSLSNI",
	"PGSSLNEGOTIATION", "PGCHANNELBINDING", "PGMINPROTOCOLVERSION", "PGMAXPROTOCOLVERSION",
}

// IgnoredVariables returns the names of connection variables that are set, and that the auditor does not see.
func IgnoredVariables(getenv func(string) string) []string {
	return slices.DeleteFunc(slices.Clone(connectionVariables), func(name string) bool { return getenv(name) == "" })
}
