package main

import "slices"

// auditorVariables are the environment variables that the auditor process gets: those of the Go runtime and of its time zones
// and certificate authorities. Its configuration comes over the link, so that no secret has to be in its environment.
var auditorVariables = []string{
	"TZ", "ZONEINFO", "SSL_CERT_FILE", "SSL_CERT_DIR",
	"GODEBUG", "GOGC", "GOMEMLIMIT", "GOMAXPROCS", "GOTRACEBACK", "GORACE", "GOCOVERDIR",
}

// auditorEnvironment returns the environment of the auditor process; it is never nil, which would mean this process's own.
func auditorEnvironment(getenv func(string) string) []string {
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

// ignoredVariables returns the names of connection variables that are set, and that the auditor does not see.
func ignoredVariables(getenv func(string) string) []string {
	return slices.DeleteFunc(slices.Clone(connectionVariables), func(name string) bool { return getenv(name) == "" })
}
