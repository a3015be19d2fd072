package capture_test

import (
	"strings"
	"testing"

	"github.com/dpwatch/dpwatch/internal/capture"
)

func TestMentions(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("long_name_", 7)
	names := []string{"users", "Order Lines", `odd"name`, "größe", long[:63]}
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
		{"part of a word", "SELECT * FROM superusers", true},
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
