package ident

import "strings"

// The shell commands of a superuser that copy a public table into the shadow database. Like docs/start.md, they take
// the addresses of both databases from the variables DATABASE and SHADOW.

// CopyCommand returns the command that creates the table with its rows in the shadow database.
func (t Table) CopyCommand() string {
	return "pg_dump --no-owner --no-privileges --table=" + shell(t.SQL()) + ` "$DATABASE" | psql -qX "$SHADOW"`
}

// RefillCommand returns the command that replaces the rows of the table in the shadow database.
func (t Table) RefillCommand() string {
	return `psql -qX "$SHADOW" -c ` + shell("TRUNCATE "+t.SQL()) + " && pg_dump --data-only --table=" + shell(t.SQL()) + ` "$DATABASE" | psql -qX "$SHADOW"`
}

// shell quotes a word for the shell.
func shell(word string) string { return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'" }
