package draft

import (
	"fmt"
	"path/filepath"
	"strings"
	"unicode"

	"github.com/dpwatch/dpwatch/internal/pg/ident"
)

// The roles are those of the replays, of the copies and the ledger, and of the copies' source: dpwatch_replay,
// dpwatch_owner, dpwatch_copy.
const (
	replay = "replay"
	owner  = "owner"
	source = "copy"
)

// fileOf returns the configuration file.
func fileOf(g guess, at server) string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	line("# Written by dpwatch init from the catalog of one database. Every line is a guess: review it. All keys: examples/dpwatch.yaml.")
	if at.passwords == "" {
		line("# The connection strings have no passwords and no sslmode: add password=${file:/etc/dpwatch/NAME} to each of them.")
	}
	line("proxy:")
	line(`  listen: "127.0.0.1:6432"`)
	address, what := at.upstream()
	line("  upstream: %s  # %s", address, what)
	line("admin:")
	line(`  listen: "127.0.0.1:9188"  # metrics, health and status, for programs on this machine`)
	line("shadow:")
	line("  dsn: %s  # a database for the copies, on this server or on another one", at.dsn(replay, at.shadow()))
	if at.engine != nil {
		line("  engine:  # a second instance of the engine, for replays: its source is the database of the copies. dpwatch doctor shows which copies it reads: docs/replay.md")
		line("    dsn: %s  # a guess: start it there, or correct the port; add password=${file:...} if it needs one", at.second())
	}
	line("privacy:")
	line("  database: %s  # sessions in other databases are not audited", word(at.database))
	line("  catalog: %s", at.dsn(source, at.database))
	line("  unit:  # %s", g.why)
	line("    table: %s", word(g.unit.String()))
	var key []string
	for _, column := range g.unit.key {
		key = append(key, word(column))
	}
	line("    key: [%s]  # its rows' key", strings.Join(key, ", "))
	if len(g.notTaken) > 0 {
		line("    # Other candidates, the best first; --unit selects another table:")
		for _, text := range g.notTaken {
			line("    #   %s", text)
		}
	}
	line("  protected:")
	for i, t := range g.protected {
		line("    - %s  # %s", word(t.String()), g.reasons[i])
	}
	g.writePaths(line)
	g.writeOthers(line)
	line("neighbours:")
	line("  source: %s", at.dsn(source, at.database))
	line("  target: %s  # this role also owns the ledger", at.dsn(owner, at.shadow()))
	line("  relation: remove  # D1 is D0 without one unit; see the relation for which your engine states its claim: docs/neighbours.md")
	line("  method: auto  # full copies while all of them together are smaller than copy_limit, then views")
	g.writeClaims(line)
	return b.String()
}

func (g guess) writeClaims(line func(string, ...any)) {
	line("claims:")
	if len(g.dp) > 0 {
		line("  functions:  # the position of the argument; check it for every form of the function")
		for _, f := range g.dp {
			delta := ""
			if f.delta > 0 {
				delta = fmt.Sprintf(", delta: %d", f.delta)
			}
			line("    - {name: %s, epsilon: %d%s}  # %s", word(f.name), f.epsilon, delta, f.why)
		}
	} else {
		line("  # No function with an argument for the epsilon was found. How dpwatch learns the claim of a query: docs/rewriting.md.")
	}
	if len(g.views) > 0 {
		line("  # Views that call these functions: every query on one draws fresh noise, and claims what its calls claim. It is audited on the copies of the view;")
		line("  # dpwatch doctor names those that lack a copy: %s", words(g.views))
	}
	if len(g.noise) > 0 {
		line("  # Volatile functions of a number that return a number. Those that only add noise belong here:")
		var names []string
		for _, f := range g.noise {
			names = append(names, word(f.Name))
		}
		line("  # safe_functions: [%s]", strings.Join(names, ", "))
	}
	if len(g.dp) == 0 {
		line("  # default: {epsilon: 1}  # the claim of every query without another one")
		line("  trust: []  # sources, written by clients, that can raise a claim; the other sources can only lower it")
		return
	}
	line("  combine: add  # the claim of a query with several of these functions is the sum of theirs")
}

// sqlOf returns the SQL for the roles, the shadow database and the rights, for psql.
func sqlOf(g guess, at server) string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	line("-- Written by dpwatch init: review it, then run it as a superuser in database %s:", comment(ident.Quote(at.database)))
	if at.passwords == "" {
		line("-- psql -v ON_ERROR_STOP=1 -v replay=PASSWORD -v owner=PASSWORD -v copy=PASSWORD -f FILE")
	} else {
		line("-- psql -v ON_ERROR_STOP=1 -f FILE")
	}
	for _, role := range Roles() {
		if at.passwords != "" {
			line("\\set %s `cat %s`", role, shell(filepath.Join(at.passwords, role)))
		}
		line("CREATE ROLE dpwatch_%s LOGIN PASSWORD :'%s';", role, role)
	}
	line("\n-- The copies are made from these tables, which are only read.")
	line("GRANT CONNECT ON DATABASE %s TO dpwatch_%s;", ident.Quote(at.database), source)
	schemas, seen := []string{}, map[string]bool{}
	for _, t := range g.protected {
		if !seen[t.Schema] {
			seen[t.Schema], schemas = true, append(schemas, t.Schema)
		}
	}
	line("GRANT USAGE ON SCHEMA %s TO dpwatch_%s;", ident.List(schemas), source)
	for _, t := range g.protected {
		line("GRANT SELECT ON %s TO dpwatch_%s;", t.SQL(), source)
	}
	for _, t := range g.public {
		line("-- If you list it in privacy.public, so that its rows are counted: GRANT USAGE ON SCHEMA %s TO dpwatch_%s; GRANT SELECT ON %s TO dpwatch_%s;",
			comment(ident.Quote(t.Schema)), source, comment(t.SQL()), source)
	}
	line("GRANT SELECT ON ALL SEQUENCES IN SCHEMA %s TO dpwatch_%s;", ident.List(schemas), source)
	line("\n-- The copies and the ledger. The functions of claims must be installed here as they are in the engine.")
	line("CREATE DATABASE %s TEMPLATE template0;", ident.Quote(at.shadow()))
	line("REVOKE ALL ON DATABASE %s FROM PUBLIC;", ident.Quote(at.shadow()))
	line("GRANT CONNECT, CREATE, TEMPORARY ON DATABASE %s TO dpwatch_%s;", ident.Quote(at.shadow()), owner)
	line("GRANT CONNECT, TEMPORARY ON DATABASE %s TO dpwatch_%s;", ident.Quote(at.shadow()), replay)
	line("\n-- What this superuser creates in the shadow database from now on: the schemas of functions and types, and the tables of privacy.public.")
	line("\\connect %s", ident.Quote(at.shadow()))
	line("ALTER DEFAULT PRIVILEGES GRANT USAGE ON SCHEMAS TO dpwatch_%s, dpwatch_%s;", replay, owner)
	line("ALTER DEFAULT PRIVILEGES GRANT SELECT ON TABLES TO dpwatch_%s, dpwatch_%s;", replay, owner)
	return b.String()
}

// comment writes a text in a comment of one line.
func comment(text string) string {
	return strings.Map(func(c rune) rune {
		if unicode.IsControl(c) || c == '\u2028' || c == '\u2029' {
			return ' '
		}
		return c
	}, text)
}

// shell quotes a path for the shell.
func shell(path string) string { return "'" + strings.ReplaceAll(path, "'", `'\''`) + "'" }
