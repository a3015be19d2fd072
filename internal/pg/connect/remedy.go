package connect

import (
	"errors"
	"fmt"
	"net"
	"regexp"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/dpwatch/dpwatch/internal/pg/ident"
)

// Remedy returns what to do about an error of a session with a configuration: that the server cannot be reached,
// rejects the role or the password, or denies the role a privilege. "" = not known. A remedy that begins with GRANT is
// a statement. No remedy contains the connection string.
func Remedy(cfg *pgconn.Config, err error) string {
	var e *pgconn.PgError
	var failed *pgconn.ConnectError
	var network net.Error
	switch {
	case errors.As(err, &e):
		return remedyOf(cfg, e)
	case errors.As(err, &failed), errors.As(err, &network):
		return fmt.Sprintf("start the server at %s:%d, or correct the host, the port and sslmode", cfg.Host, cfg.Port)
	}
	return ""
}

func remedyOf(cfg *pgconn.Config, e *pgconn.PgError) string {
	switch e.Code {
	case "28P01":
		return fmt.Sprintf("correct the user or the password, or set the password: ALTER ROLE %s PASSWORD '...'", ident.Quote(cfg.User))
	case "28000":
		return fmt.Sprintf("ALTER ROLE %s LOGIN, give the role a line in pg_hba.conf, or correct the user", ident.Quote(cfg.User))
	case "3D000":
		return fmt.Sprintf("CREATE DATABASE %s, or correct the name of the database", ident.Quote(cfg.Database))
	case "53300":
		return "raise max_connections or the role's CONNECTION LIMIT"
	case "42501":
		return missingGrant(cfg, e)
	}
	return ""
}

// denied is the server's message of a missing privilege, in English: the kind of the object and its name.
var denied = regexp.MustCompile(`^permission denied for (database|schema|table|view|materialized view|foreign table|sequence|function|procedure|aggregate|type|language|foreign server) (.+)$`)

// privileges are the kinds of objects in a GRANT, each with the privilege that reading needs.
var privileges = map[string]string{
	"database": "CONNECT ON DATABASE", "schema": "USAGE ON SCHEMA", "table": "SELECT ON TABLE", "view": "SELECT ON TABLE", "materialized view": "SELECT ON TABLE",
	"foreign table": "SELECT ON TABLE", "sequence": "SELECT ON SEQUENCE", "function": "EXECUTE ON ROUTINE", "procedure": "EXECUTE ON ROUTINE", "aggregate": "EXECUTE ON ROUTINE",
	"type": "USAGE ON TYPE", "language": "USAGE ON LANGUAGE", "foreign server": "USAGE ON FOREIGN SERVER",
}

// missingGrant returns the statement that gives the role the privilege to read an object that the server's error names.
// The message of an error that a function raised can hold values of rows: it is not used.
func missingGrant(cfg *pgconn.Config, e *pgconn.PgError) string {
	m := denied.FindStringSubmatch(e.Message)
	if m == nil || !ofServer(e) {
		return ""
	}
	privilege, name := privileges[m[1]], strings.Trim(m[2], `"`) // relations and functions are named without their schemas
	if m[1] == "database" && name == m[2] {                      // quoted: a session cannot begin
		privilege = "CREATE ON DATABASE"
	}
	return fmt.Sprintf("GRANT %s %s TO %s", privilege, ident.Quote(name), ident.Quote(cfg.User))
}

// ofServer reports whether the server itself raised an error of a missing privilege.
func ofServer(e *pgconn.PgError) bool {
	return strings.HasPrefix(e.Routine, "aclcheck_error") || e.Routine == "CheckMyDatabase"
}

// DeniedObject returns the kind of the object to which the server itself denies access, such as "table", and its name,
// without a schema if it is in one; "" for other errors.
func DeniedObject(err error) (kind, name string) {
	var e *pgconn.PgError
	if !errors.As(err, &e) || e.Code != "42501" || !ofServer(e) {
		return "", ""
	}
	if m := denied.FindStringSubmatch(e.Message); m != nil {
		return m[1], strings.Trim(m[2], `"`)
	}
	return "", ""
}

// Denied describes a missing privilege (SQLSTATE 42501): the role, the database, the object if the server names one,
// and the statement that grants it. "" for other errors. Its text has no value of a row.
func Denied(cfg *pgconn.Config, err error) string {
	var e *pgconn.PgError
	if !errors.As(err, &e) || e.Code != "42501" {
		return ""
	}
	text := fmt.Sprintf("role %s lacks a privilege in database %s", cfg.User, cfg.Database)
	if ofServer(e) {
		text += ": " + e.Message
	}
	if grant := missingGrant(cfg, e); grant != "" {
		text += "; run in that database, as the owner of the object: " + grant
	}
	return text
}
