package config

import (
	"fmt"
	"net/url"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml/token"
	"github.com/jackc/pgx/v5"

	"github.com/dpwatch/dpwatch/internal/pg/ident"
)

// faults collects the errors of a file. lines holds the line where each path is set.
type faults struct {
	file   string
	lines  map[string]int
	errors Errors
	within string // path of the item of engines that is validated, with a dot at the end; "" = the top level
}

// add adds an error at the line of a path.
func (x *faults) add(path, format string, args ...any) {
	path = x.located(path)
	for _, f := range x.errors {
		if f.Path == path {
			return
		}
	}
	line, p := 0, path
	for line == 0 { // a missing key is reported at its nearest parent
		line = x.lines[p]
		if p == "" {
			break
		}
		p = parent(p)
	}
	x.errors = append(x.errors, Error{File: x.file, Line: line, Path: path, Text: fmt.Sprintf(format, args...)})
}

func (x *faults) errorf(t *token.Token, path, format string, args ...any) {
	line := 0
	if t != nil && t.Position != nil {
		line = t.Position.Line
	}
	x.errors = append(x.errors, Error{File: x.file, Line: line, Path: path, Text: fmt.Sprintf(format, args...)})
}

// located returns the path where an error of a key of the present engine is reported: within its item of the list if
// the key, or the deepest section around it that the file has, is set there or nowhere; otherwise at the top level.
func (x *faults) located(path string) string {
	section, _, _ := strings.Cut(path, ".")
	section, _, _ = strings.Cut(section, "[")
	if _, ok := yamlFields(reflect.TypeFor[EngineSections]())[section]; x.within == "" || !ok {
		return path
	}
	for p := path; p != ""; p = parent(p) {
		switch {
		case x.lines[x.within+p] != 0:
			return x.within + path
		case x.lines[p] != 0:
			return path
		}
	}
	return x.within + path
}

// isSet reports whether the file sets a key, for the present engine or at the top level.
func (x *faults) isSet(path string) bool { return x.lines[path] != 0 || x.lines[x.within+path] != 0 }

// oneOf checks that a key has one of two or more words.
func (x *faults) oneOf(path, got string, want ...string) (ok bool) {
	if ok = slices.Contains(want, got); !ok {
		last := len(want) - 1
		x.add(path, "%q: must be %s or %s", got, strings.Join(want[:last], ", "), want[last])
	}
	return ok
}

func (x *faults) atLeast(path string, v, low int) {
	if v < low {
		x.add(path, "must be at least %d", low)
	}
}

func (x *faults) atLeastBytes(path string, v, low ByteSize) {
	if v < low {
		x.add(path, "is %s: must be at least %s", v, low)
	}
}

func (x *faults) positive(path string, v Duration) {
	if v <= 0 {
		x.add(path, "must be more than 0")
	}
}

// httpURL validates a URL; "" is none. The error has no part of it: it may hold a secret.
func (x *faults) httpURL(path, text string) {
	if u, err := url.Parse(text); text != "" && (err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https") {
		x.add(path, "is not a URL that begins with http:// or https://")
	}
}

func (x *faults) columnName(path, name string) {
	if parts := strings.Split(name, "."); len(parts) != 3 || slices.Contains(parts, "") {
		x.add(path, "%q is not schema.table.column", name)
	}
}

// connection validates a connection string; "" is none. pgx also reads the certificate, key and service files that it
// names. The error contains no part of the string, which may hold a password.
func (x *faults) connection(path string, dsn Secret) {
	if _, err := pgx.ParseConfig(dsn.Reveal()); err != nil {
		x.add(path, "not a PostgreSQL connection string (postgres://user@host:port/database or key=value pairs), or it has an invalid sslmode, an unknown service, or a certificate or key file that cannot be read")
	}
}

func (x *faults) table(path, name string) {
	t := ident.ParseTable(name)
	switch {
	case strings.Contains(name, `"`):
		x.add(path, "%s: write names as in the catalog, with their case and without quotation marks", name)
	case t.Schema == "" || t.Name == "" || strings.Contains(t.Name, "."):
		x.add(path, "%q is not schema.table", name)
	case len(t.Schema) > ident.MaxBytes || len(t.Name) > ident.MaxBytes:
		x.add(path, "%q: a name of PostgreSQL has at most %d bytes", name, ident.MaxBytes)
	case !utf8.ValidString(name) || strings.ContainsRune(name, 0):
		x.add(path, "%q is not text in UTF-8, or contains a NUL byte", name)
	case t.Schema == "information_schema" || strings.HasPrefix(t.Schema, "pg_") || strings.HasPrefix(t.Name, "pg_"):
		x.add(path, "%q is or looks like a system catalog", name)
	}
}

// function validates the name of a function.
func (x *faults) function(path, name string) {
	if _, _, ok := ident.ParseFunction(name); !ok {
		x.add(path, "%q: write it as name or schema.name", name)
	}
}

// match validates the fields of a rule that select queries; otherwise is the key for those that no rule matches.
func (x *faults) match(path, otherwise string, m match, protected []string) {
	if m == (match{}) {
		x.add(path, "matches every query: use %s for that, or set user, database, application_name, table or pattern", otherwise)
	}
	if _, err := regexp.Compile(m.pattern); err != nil {
		x.add(path+".pattern", "not a regular expression: %v", err)
	}
	if m.table != "" && !slices.Contains(protected, m.table) {
		x.add(path+".table", "%q is not listed in privacy.protected", m.table)
	}
}
