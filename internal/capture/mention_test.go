package capture_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/dpwatch/dpwatch/internal/capture"
	"github.com/dpwatch/dpwatch/internal/pg/ident"
)

func TestMentions(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("long_name_", 7)
	names := []string{"users", "Order Lines", `odd"name`, "größe", long[:63], "r$d", "Sales2", "sıra", "k"}
	for _, c := range []struct {
		name, sql string
		want      bool
	}{
		{"plain", "SELECT count(*) FROM users", true},
		{"in upper case", "SELECT count(*) FROM USERS", true},
		{"at the end of a longer text", "select 1 from a, b, public.Users", true},
		{"quoted", `SELECT * FROM "Order Lines"`, true},
		{"with a doubled quote", `SELECT * FROM "odd""name"`, true},
		{"another script", "SELECT * FROM größe", true},
		{"cut by the server", "SELECT * FROM " + long, true},
		{"the end of a longer identifier", "SELECT * FROM log_users", false},
		{"the beginning of a longer identifier", "SELECT * FROM users_2026", false},
		{"part of a longer identifier", "SELECT * FROM superusers", false},
		{"part of an identifier with other letters", "SELECT * FROM äusers, usersß", false},
		{"a column of a longer identifier", "SELECT old_users.id, users$.id FROM x", true}, // a dollar sign may end a quote
		{"as a qualifier", "SELECT users.id FROM x", true},
		{"in a dollar quote", "SELECT f($$SELECT 1 FROM users$$)", true},
		{"in a dollar quote with a tag", "SELECT f($users$SELECT 1$users$)", true},
		{"after an escape", `SELECT f(E'SELECT 1 FROM\tusers')`, true},
		{"after an escape, quoted", `SELECT f(E'SELECT 1 FROM \"users\"')`, true},
		{"in a string", "SELECT f('users')", true},
		{"after a comment", "SELECT 1 FROM/**/users/**/WHERE true", true},
		{"after a line comment", "SELECT 1 FROM--\nusers--", true},
		{"before a cast", "SELECT users::text", true},
		{"in brackets", "SELECT (users).id", true},
		{"with a dollar sign", "SELECT * FROM r$d", true},
		{"with a dollar sign in upper case", "SELECT * FROM R$D", true},
		{"mixed case", `SELECT * FROM "Sales2"`, true},
		{"one letter", "SELECT * FROM k", true},
		{"one letter of a word", "SELECT ok", false},
		{"letters folded by a single-byte server", "SELECT * FROM GRÖẞE, GRÖßE", true},
		{"letters folded by a Turkish server", "SELECT * FROM S\u0130RA", true},
		{"truncated, but shorter than another", "SELECT * FROM " + long[:50], false},
		{"escaped identifier", `SELECT * FROM U&"\0075sers"`, true},
		{"escaped identifier in lower case", `SELECT * FROM u&"\0075sers"`, true},
		{"another table", "SELECT abalance FROM pgbench_accounts WHERE aid = 1", false},
		{"an odd name unquoted is no name", `SELECT odd"name`, false},
		{"almost", "SELECT * FROM user", false},
		{"nothing", "", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if got := capture.Mentions(names)(c.sql); got != c.want {
				t.Errorf("%q: %t", c.sql, got)
			}
		})
	}
	for name, names := range map[string][]string{"no names": nil, "an empty one": {""}, "every relation of a schema": {"a", "*"}} {
		if !capture.Mentions(names)("SELECT 1") {
			t.Errorf("%s: says no", name)
		}
	}
}

func TestMentionsAllocatesNothing(t *testing.T) {
	in := capture.Mentions([]string{"users", "accounts"})
	if n := testing.AllocsPerRun(100, func() { in("SELECT abalance FROM pgbench WHERE aid = $1") }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// Every name is found wherever the server would read an identifier: the reference folds and truncates each candidate as
// the server does.
func FuzzMentions(f *testing.F) {
	for _, name := range []string{"users", "Order Lines", `odd"name`, "größe", "r$d", strings.Repeat("x", 70)} {
		f.Add(name, "SELECT * FROM ", " WHERE true", true)
		f.Add(name, "SELECT * FROM a.", "", false)
	}
	f.Fuzz(func(t *testing.T, name, before, after string, quoted bool) {
		if name == "" || !utf8.ValidString(name) || strings.ContainsRune(name, 0) {
			return
		}
		stored, text := name, `"`+strings.ReplaceAll(name, `"`, `""`)+`"`
		if !quoted {
			if !plain.MatchString(name) || followed.MatchString(after) || preceded.MatchString(before) {
				return
			}
			stored, text = ident.Fold(name), name
		}
		if path, ok := ident.ParseList(`"` + strings.ReplaceAll(stored, `"`, `""`) + `"`); ok { // truncated
			stored = path[0]
		}
		if sql := before + text + after; !capture.Mentions([]string{stored, "other"})(sql) {
			t.Errorf("%q is not found in %q", stored, sql)
		}
	})
}

var (
	plain    = regexp.MustCompile(`^[A-Za-z_\x{80}-\x{10ffff}][A-Za-z0-9_$\x{80}-\x{10ffff}]*$`) // an identifier without quotes
	followed = regexp.MustCompile(`^[A-Za-z0-9_$\x{80}-\x{10ffff}]`)                             // a text that would continue it
	preceded = regexp.MustCompile(`[A-Za-z0-9_$\x{80}-\x{10ffff}]$`)
)

func BenchmarkMentions(b *testing.B) {
	const sql = "SELECT abalance, bid, filler FROM pgbench_accounts WHERE aid = $1 AND bid IN (SELECT bid FROM pgbench_branches)"
	for _, n := range []int{1, 10, 1000} {
		names := make([]string, n)
		for i := range names {
			names[i] = fmt.Sprintf("some_table_%d", i)
		}
		in := capture.Mentions(names)
		b.Run(fmt.Sprintf("names=%d", n), func(b *testing.B) {
			b.SetBytes(int64(len(sql)))
			for b.Loop() {
				in(sql)
			}
		})
	}
}
