package draft

import (
	"context"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/dpwatch/dpwatch/internal/pg/connect"
	"github.com/dpwatch/dpwatch/internal/pg/ident"
	"github.com/dpwatch/dpwatch/internal/sqlstate"
	"github.com/dpwatch/dpwatch/replay/neighbours/owners"
)

// server is where the database is, and where the passwords of the roles are.
type server struct {
	host, port, database, passwords string
	engine                          *pgconn.Config // of Options.Engine, nil for none
}

// Options are what is not guessed.
type Options struct {
	Unit      string // the table of the privacy unit, schema.table; "" = it is guessed
	Engine    string // the connection string of an engine with a port of its own; "" = the engine is the database
	Passwords string // the absolute path of the directory with the passwords of Roles, a file for each; "" = connection strings have none
}

// Roles are the names of the files in Options.Passwords.
func Roles() []string { return []string{"replay", "owner", "copy"} }

// Make reads the catalog of a database and returns a configuration file, and the SQL that creates the roles and the
// shadow database. Nothing is written.
func Make(ctx context.Context, dsn string, o Options) (file, sql string, err error) {
	cfg, err := connect.Parse(dsn, connect.Options{})
	if err != nil {
		return "", "", fmt.Errorf("--dsn %w", err)
	}
	var engine *pgconn.Config
	if o.Engine != "" {
		parsed, err := connect.Parse(o.Engine, connect.Options{})
		if err != nil {
			return "", "", fmt.Errorf("--engine %w", err)
		}
		engine = &parsed.Config
	}
	conn, err := connect.Open(ctx, dsn, connect.Options{Application: "dpwatch init", ReadOnly: true})
	if err != nil {
		return "", "", fmt.Errorf("connect to %s: %w", connect.Where(cfg), sqlstate.Withhold(err))
	}
	defer conn.Close(ctx) //nolint:errcheck // it was read
	s, err := read(ctx, conn)
	if err != nil {
		return "", "", fmt.Errorf("read the catalog of %s: %w", connect.Where(cfg), sqlstate.Withhold(err))
	}
	if len(s.tables) == 0 {
		return "", "", errors.New("the database has no tables: give the one with the protected tables")
	}
	all := newGraph(s)
	unit, why, notTaken, err := all.chooseUnit(o.Unit)
	if err != nil {
		return "", "", err
	}
	found, err := search(ctx, conn, s, unit)
	if err != nil {
		return "", "", fmt.Errorf("search %s for columns that name a person: %w", connect.Where(cfg), sqlstate.Withhold(err))
	}
	g := all.guessFrom(unit, found)
	g.why, g.notTaken = why, notTaken
	if err := g.count(ctx, conn); err != nil {
		return "", "", fmt.Errorf("count rows of %s: %w", connect.Where(cfg), sqlstate.Withhold(err))
	}
	at := server{cfg.Host, strconv.Itoa(int(cfg.Port)), cfg.Database, o.Passwords, engine}
	return fileOf(g, at), sqlOf(g, at), nil
}

// search finds the columns that name a person of the unit's table.
func search(ctx context.Context, conn *pgx.Conn, s schema, unit int) (found *owners.Found, err error) {
	o := owners.Options{Unit: s.tables[unit].Table, Key: s.tables[unit].key}
	for _, t := range s.tables {
		o.Tables = append(o.Tables, t.Table)
	}
	err = pgx.BeginTxFunc(ctx, conn, pgx.TxOptions{AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) error {
		found, err = owners.Find(ctx, tx, o)
		return err
	})
	return found, err
}

// counted is the number of rows in which a column of an act is looked at.
const counted = 100_000

// count adds to the lines that would follow an act in how many rows it names somebody. What takes too long, or cannot be
// read, has no number.
func (g *guess) count(ctx context.Context, conn *pgx.Conn) error {
	for i := range g.maybe[:min(len(g.maybe), maxLines)] {
		c := &g.maybe[i]
		if !c.Keyed {
			continue
		}
		var named, all int64
		err := pgx.BeginTxFunc(ctx, conn, pgx.TxOptions{AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) error {
			if err := connect.Run(ctx, tx, "SET LOCAL statement_timeout TO 2000"); err != nil {
				return err
			}
			return tx.QueryRow(ctx, fmt.Sprintf("SELECT count(c), count(*) FROM (SELECT %s AS c FROM %s LIMIT %d) x", ident.Quote(c.Columns[0]), c.Table.SQL(), counted)).Scan(&named, &all)
		})
		var failed *pgconn.PgError
		switch {
		case err == nil:
			c.Why = append(c.Why, fmt.Sprintf("it names somebody in %d of %s", named, count(int(all), "row", "rows")))
		case !errors.As(err, &failed):
			return err
		}
	}
	return nil
}

// plain are names that YAML takes for strings, and comments hold in one line.
var plain = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)+$`)

// word writes a name as a YAML scalar.
func word(name string) string {
	if plain.MatchString(name) {
		return name
	}
	return strings.ReplaceAll(strconv.Quote(name), "${", "$${")
}

// identifier are the names that a comment shows without quotes.
var identifier = regexp.MustCompile(`^[\pL_][\pL\pN_]*$`)

// shown writes the name of a column in a comment.
func shown(name string) string {
	if identifier.MatchString(name) {
		return name
	}
	return strconv.Quote(name)
}

func words(names []ident.Table) string { return strings.Join(tableNames(names), ", ") }

func tableNames(names []ident.Table) (out []string) {
	for _, n := range names {
		out = append(out, word(n.String()))
	}
	return out
}

// count writes a number with what it counts.
func count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// dsn returns a connection string of a role. Its password is that in the file, or is missing.
func (s server) dsn(role, database string) string {
	text := word(fmt.Sprintf("host=%s port=%s dbname=%s user=dpwatch_%s", keyword(s.host), s.port, keyword(database), role))
	if s.passwords == "" {
		return text
	}
	return strings.TrimSuffix(text, `"`) + ` password=${file:` + strings.Trim(strconv.Quote(filepath.Join(s.passwords, role)), `"`) + `}"`
}

// keyword writes a value of a connection string.
func keyword(value string) string {
	return "'" + strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(value) + "'"
}

// upstream returns the address of the engine, and what it is.
func (s server) upstream() (address, what string) {
	if s.engine != nil {
		return addressOf(s.engine.Host, strconv.Itoa(int(s.engine.Port))), "the engine"
	}
	return addressOf(s.host, s.port), "the database that was read; if the engine has a port of its own, give it with --engine"
}

func addressOf(host, port string) string {
	if strings.HasPrefix(host, "/") {
		return word("unix:" + host + "/.s.PGSQL." + port)
	}
	return word(net.JoinHostPort(host, port))
}

// second returns the connection string of a second instance of the engine: a guess, the port after that of the first.
func (s server) second() string {
	e := s.engine
	return word(fmt.Sprintf("host=%s port=%d dbname=%s user=%s", keyword(e.Host), max(int(e.Port)+1, 1)%(1<<16), keyword(e.Database), keyword(e.User)))
}

// shadow is the name of the shadow database.
func (s server) shadow() string { return s.database + "_shadow" }
