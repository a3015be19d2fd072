package neighbours_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/dpwatch/dpwatch/internal/longtest"
	"github.com/dpwatch/dpwatch/internal/pgtemp/pgtest"
	"github.com/dpwatch/dpwatch/replay/neighbours"
	"github.com/dpwatch/dpwatch/rewrite"
)

// extremeCase is a source schema to which a unit is added. unit is the unit's table and key, measures are
// table.column:low:high, added is the number of rows that each table gets, and check a query on d0 and d1 that counts
// faults.
type extremeCase struct {
	name, sql string
	tables    []string
	unit      string
	key       []string
	measures  []string
	added     map[string]int64
	check     string
	fault     string // error of create; "" = success
}

var extremeCases = []extremeCase{
	{
		name: "composite key, quoted names, a path of three tables",
		sql: `CREATE TABLE "P eople" ("Land" text, "Nr." int, "in""come" numeric(10,2) NOT NULL, PRIMARY KEY ("Land", "Nr."));
			CREATE TABLE "Acc" (id serial PRIMARY KEY, "Land" text, "Nr." int, FOREIGN KEY ("Land", "Nr.") REFERENCES "P eople");
			CREATE TABLE tx (acc int REFERENCES "Acc", n int, amount float8, PRIMARY KEY (acc, n));
			INSERT INTO "P eople" SELECT 'L' || g % 2, g, g FROM generate_series(1, 6) g;
			INSERT INTO "Acc" ("Land", "Nr.") SELECT 'L' || g % 2, g FROM generate_series(1, 6) g;
			INSERT INTO tx SELECT 1 + g % 6, g, g FROM generate_series(1, 31) g`,
		tables: []string{"public.P eople", "public.Acc", "public.tx"}, unit: "public.P eople", key: []string{"Land", "Nr."},
		measures: []string{`public.P eople.in"come:0:500`, "public.tx.amount:-1:99.5"},
		added:    map[string]int64{"P eople": 1, "Acc": 1, "tx": 6},
		check: `SELECT count(*)::text FROM d1.tx LEFT JOIN d1."Acc" a ON a.id = acc LEFT JOIN d1."P eople" p USING ("Land", "Nr.") WHERE p."Land" IS NULL
			OR (p."Land", p."Nr.") NOT IN (SELECT "Land", "Nr." FROM d0."P eople") AND (amount <> 99.5 OR p."in""come" <> 500)`,
	},
	{
		name: "enums, generated columns, NOT NULL without default, checks, unique indexes",
		sql: `CREATE TYPE public.colour AS ENUM ('red', 'blue'); CREATE DOMAIN public.short AS varchar(12) NOT NULL CHECK (VALUE <> '');
			CREATE TABLE people (id uuid PRIMARY KEY, mail varchar(40) NOT NULL UNIQUE, colour public.colour NOT NULL, nick public.short, born date NOT NULL CHECK (born > '1900-01-01'),
				income int NOT NULL CHECK (income BETWEEN 0 AND 1000), double int GENERATED ALWAYS AS (income * 2) STORED, UNIQUE (colour, nick));
			CREATE UNIQUE INDEX ON people (lower(mail));
			CREATE TABLE visits (who uuid NOT NULL REFERENCES people, day date NOT NULL, at timestamptz NOT NULL, colour public.colour, UNIQUE (who, day), UNIQUE (at));
			INSERT INTO people SELECT md5(g::text)::uuid, 'M' || g, 'red', 'n' || g, '2000-01-01', g FROM generate_series(1, 5) g;
			INSERT INTO visits SELECT md5((1 + g % 5)::text)::uuid, '2024-01-01'::date + g, '2024-01-01'::timestamptz + g * interval '1 hour', 'blue' FROM generate_series(1, 26) g`,
		tables: []string{"public.people", "public.visits"}, unit: "public.people", key: []string{"id"},
		measures: []string{"public.people.income:0:1000"},
		added:    map[string]int64{"people": 1, "visits": 6},
		check:    "SELECT count(*)::text FROM d1.people WHERE id NOT IN (SELECT id FROM d0.people) AND (income <> 1000 OR double <> 2000 OR colour <> 'red')",
	},
	{
		name: "a self reference, a cycle, and rows that two units share",
		sql: `CREATE TABLE people (id int PRIMARY KEY, score int);
			CREATE TABLE talks (id int PRIMARY KEY, last int);
			CREATE TABLE messages (id int PRIMARY KEY, sender int REFERENCES people, receiver int REFERENCES people, reply_to int REFERENCES messages, talk int REFERENCES talks);
			ALTER TABLE talks ADD FOREIGN KEY (last) REFERENCES messages;
			INSERT INTO people SELECT g, g FROM generate_series(1, 4) g; INSERT INTO talks SELECT g FROM generate_series(1, 3) g;
			INSERT INTO messages SELECT g, 1 + g % 3, 1 + (g + 1) % 3, nullif(g - 1, 0), 1 + g % 3 FROM generate_series(1, 9) g;
			UPDATE talks SET last = id`,
		tables: []string{"public.people", "public.talks", "public.messages"}, unit: "public.people", key: []string{"id"},
		measures: []string{"public.people.score:0:77"},
		added:    map[string]int64{"people": 1, "talks": 2, "messages": 6},
		check: `SELECT count(*)::text FROM d1.messages m LEFT JOIN d1.people s ON s.id = sender LEFT JOIN d1.people r ON r.id = receiver LEFT JOIN d1.talks t ON t.id = talk
			WHERE s.id IS NULL OR r.id IS NULL OR t.id IS NULL`,
	},
	{
		name: "partitions by the key, dates as keys",
		sql: `CREATE TABLE people (id int PRIMARY KEY, v float8) PARTITION BY HASH (id);
			CREATE TABLE people_0 PARTITION OF people FOR VALUES WITH (MODULUS 2, REMAINDER 0); CREATE TABLE people_1 PARTITION OF people FOR VALUES WITH (MODULUS 2, REMAINDER 1);
			CREATE TABLE days (day date PRIMARY KEY, who int REFERENCES people, v float8);
			INSERT INTO people SELECT g, g FROM generate_series(1, 7) g; INSERT INTO days SELECT '2024-01-01'::date + g, 1 + g % 7, g FROM generate_series(1, 30) g`,
		tables: []string{"public.people", "public.days"}, unit: "public.people", key: []string{"id"},
		measures: []string{"public.people.v:0:1", "public.days.v:0:2"},
		check:    "SELECT count(*)::text FROM d1.days WHERE who NOT IN (SELECT id FROM d0.people) AND v <> 2",
	},
	{
		name:   "a bound that a constraint forbids",
		sql:    `CREATE TABLE people (id int PRIMARY KEY, income int CHECK (income < 100)); INSERT INTO people SELECT g, g FROM generate_series(1, 4) g`,
		tables: []string{"public.people"}, unit: "public.people", key: []string{"id"}, measures: []string{"public.people.income:0:100"},
		fault: "the added unit breaks the check constraint people_income_check",
	},
	{
		name:   "a key that has no room for another value",
		sql:    `CREATE TABLE people (id varchar(4) PRIMARY KEY, income int); INSERT INTO people SELECT 'p' || g, g FROM generate_series(1, 4) g`,
		tables: []string{"public.people"}, unit: "public.people", key: []string{"id"}, measures: []string{"public.people.income:0:100"},
		added: map[string]int64{"people": 1},
		check: "SELECT count(*)::text FROM d1.people WHERE length(id) > 4",
	},
	{
		name:   "a unique key of an enum",
		sql:    `CREATE TYPE public.slot AS ENUM ('a', 'b', 'c'); CREATE TABLE people (id int PRIMARY KEY, slot public.slot UNIQUE, income int); INSERT INTO people VALUES (1, 'a', 1), (2, 'b', 2)`,
		tables: []string{"public.people"}, unit: "public.people", key: []string{"id"}, measures: []string{"public.people.income:0:100"},
		fault: "has no column of a type for which new values can be generated: use another relation",
	},
	{
		name:   "an integer key without room",
		sql:    `CREATE TABLE people (id smallint PRIMARY KEY, income int); INSERT INTO people VALUES (1, 1), (32767, 2)`,
		tables: []string{"public.people"}, unit: "public.people", key: []string{"id"}, measures: []string{"public.people.income:0:100"},
		fault: "the type of a key has no further value",
	},
	{
		name:   "a unique key on an expression",
		sql:    `CREATE TABLE people (id int PRIMARY KEY, income int); INSERT INTO people VALUES (1, 1); CREATE UNIQUE INDEX only_one ON people ((true))`,
		tables: []string{"public.people"}, unit: "public.people", key: []string{"id"}, measures: []string{"public.people.income:0:9"},
		fault: "the added unit breaks the unique key only_one, which is on an expression",
	},
	{
		name:   "bounds in the wrong order",
		sql:    `CREATE TABLE people (id int PRIMARY KEY, income int); INSERT INTO people VALUES (1, 1)`,
		tables: []string{"public.people"}, unit: "public.people", key: []string{"id"}, measures: []string{"public.people.income:9:0"},
		fault: "neighbours.measures[0]: low 9 is above high 0",
	},
	{
		name:   "a bound of another type",
		sql:    `CREATE TABLE people (id int PRIMARY KEY, income smallint); INSERT INTO people VALUES (1, 1), (2, 2)`,
		tables: []string{"public.people"}, unit: "public.people", key: []string{"id"}, measures: []string{"public.people.income:0:99999"},
		fault: "neighbours.measures[0]",
	},
}

// TestExtremeSchemas adds a unit in schemas with every known obstacle.
func TestExtremeSchemas(t *testing.T) {
	longtest.Skip(t)
	t.Parallel()
	for _, tc := range extremeCases {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			o := neighbours.Options{
				RenameBody: rewrite.RenameBody, Source: pgtest.Database(t), Target: pgtest.Database(t), Control: "dpwatch", D0: "d0", D1: []string{"d1"},
				Unit: neighbours.Unit{Table: table(tc.unit), Key: tc.key}, Relation: neighbours.Extreme, Method: neighbours.Auto, CopyLimit: 1 << 30,
				Choose: []neighbours.Choice{{Rule: neighbours.MostRows, K: 1}},
			}
			for _, name := range tc.tables {
				o.Protected = append(o.Protected, table(name))
			}
			for _, m := range tc.measures {
				part := strings.Split(m, ":")
				i := strings.LastIndexByte(part[0], '.')
				if strings.HasSuffix(part[0], `in"come`) {
					i = strings.Index(part[0], `.in"come`)
				}
				o.Measures = append(o.Measures, neighbours.Measure{Column: neighbours.Column{Table: table(part[0][:i]), Name: part[0][i+1:]}, Low: part[1], High: part[2]})
			}
			run(t, o.Source, tc.sql)
			_, err := neighbours.Create(t.Context(), o)
			if tc.fault != "" {
				if err == nil || !strings.Contains(err.Error(), tc.fault) {
					t.Errorf("got %v, want %q", err, tc.fault)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			d := verified(t, o)[0]
			if len(d.Removed) > 0 {
				t.Errorf("removed %v", d.Removed)
			}
			for name, n := range tc.added {
				if d.Added[name] != n {
					t.Errorf("added %v, want %v", d.Added, tc.added)
				}
			}
			if got := lines(t, o.Target, tc.check); got[0] != "0" {
				t.Errorf("%s faults by %s", got[0], tc.check)
			}
		})
	}
}

// TestVerifyLooksAtTheUnit: verify reports a unit that differs in more than it should.
func TestVerifyLooksAtTheUnit(t *testing.T) {
	longtest.Skip(t)
	t.Parallel()
	spoiled := func(t *testing.T, o neighbours.Options, spoil, want string) {
		t.Helper()
		run(t, o.Target, spoil)
		report, err := neighbours.Verify(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.ContainsFunc(report.Pairs[0].Faults, func(f string) bool { return strings.Contains(f, want) }) {
			t.Errorf("%s: faults %q, want %q", spoil, report.Pairs[0].Faults, want)
		}
	}
	for _, relation := range []neighbours.Relation{neighbours.Remove, neighbours.Replace, neighbours.Extreme} {
		t.Run(string(relation), func(t *testing.T) {
			t.Parallel()
			o := ranked(t)
			o.Relation, o.D1 = relation, []string{"d1"}
			o.Choose = []neighbours.Choice{{Rule: neighbours.MostRows, K: 1}} // the unit named many
			o.Measures = []neighbours.Measure{{Column: neighbours.Column{Table: table("public.tx"), Name: "spent"}, Low: "0", High: "1000"}}
			if relation == neighbours.Remove {
				o.Measures = nil
			}
			create(t, o)
			verified(t, o)
			switch relation {
			case neighbours.Remove:
				spoiled(t, o, "DELETE FROM d1.tx WHERE name = 'alone'", "table tx: rows of other units differ")
				run(t, o.Target, "INSERT INTO d1.tx SELECT * FROM d0.tx WHERE name = 'alone'")
				verified(t, o)
				// Another unit is missing instead.
				run(t, o.Target, "INSERT INTO d1.people SELECT * FROM d0.people WHERE name = 'many'; INSERT INTO d1.tx SELECT * FROM d0.tx WHERE name = 'many'")
				spoiled(t, o, "DELETE FROM d1.tx WHERE name = 'poor'; DELETE FROM d1.people WHERE name = 'poor'", "table people: 1 rows of the unit are still there")
			case neighbours.Replace:
				spoiled(t, o, "UPDATE d1.tx SET store = 9 WHERE name = 'many'", "table tx: the unit's rows differ in more than its measures (20 in D0, 20 here)")
				spoiled(t, o, "DELETE FROM d1.tx WHERE name = 'many'", "table tx: the unit's rows differ in more than its measures (20 in D0, 0 here)")
			case neighbours.Extreme:
				spoiled(t, o, "UPDATE d1.tx SET store = 9 WHERE id = (SELECT max(id) FROM d1.tx)", "table tx: the added unit's rows differ from those that they were made from in more than keys and measures")
				spoiled(t, o, "UPDATE d1.tx SET spent = 3 WHERE id = (SELECT max(id) FROM d1.tx)", "table tx: 1 rows of the added unit have measures that are not at their upper bounds")
				spoiled(t, o, "DELETE FROM d1.tx WHERE id = (SELECT max(id) FROM d1.tx)", "table tx: the added unit has 19 rows, and the one that it was made from has 20")
				spoiled(t, o, "INSERT INTO d1.people VALUES ('second', 1)", "it holds no unit that D0 does not hold, or more than one")
			}
		})
	}
}
