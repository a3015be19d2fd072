package replay

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/dpwatch/dpwatch/internal/pg/builtin"
)

// kindsOfRelations is the beginning of a query that needs to know which relations of the shadow database are copies.
// $1 is an array of the schemas of the copies, that of D0 first, $2 shadow.search_path, $3 the public tables as
// schema.table, $4 the schemas of the protected tables. It defines
//
//   - relations: all relations that hold rows or return some, without the server's own;
//   - others: the schemas beyond $1 that have the same relations as another one, which is not a schema of originals.
//     They are assumed to be copies: of another neighbour, or of another engine;
//   - read_by (parent, child, viewed): the partitions of a table and the tables of a view; viewed distinguishes them;
//   - own (oid, world, viewed): the relations that a query reads if it reads the copies of a world. viewed reports that
//     only views of the copies read it, which are no part of its schema;
//   - originals: the relations outside the copies that have the name of a copy, with their partitions, their tables if
//     they are views, and the materialized views of them.
const kindsOfRelations = `WITH RECURSIVE relations AS (
	SELECT c.oid, n.nspname::text, c.relname::text, c.relkind, n.nspname || '.' || c.relname = ANY ($3::text[]) AS public
	FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
	WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') AND pg_catalog.left(n.nspname::text, 3) <> 'pg_' AND n.nspname <> 'information_schema'
), names AS (
	SELECT nspname, pg_catalog.array_agg(relname ORDER BY relname) AS all FROM relations
	WHERE nspname <> ALL ($2::text[] || $4::text[]) GROUP BY nspname HAVING NOT pg_catalog.bool_or(public)
), others AS (
	SELECT nspname FROM names n WHERE nspname <> ALL ($1::text[]) AND EXISTS (SELECT FROM names o WHERE o.all = n.all AND o.nspname <> n.nspname)
), reads AS (
	SELECT DISTINCT r.ev_class AS parent, d.refobjid AS child FROM pg_catalog.pg_rewrite r
	JOIN pg_catalog.pg_depend d ON d.classid = 'pg_catalog.pg_rewrite'::regclass AND d.objid = r.oid
		AND d.refclassid = 'pg_catalog.pg_class'::regclass AND d.refobjid <> r.ev_class
), read_by AS (
	SELECT inhparent AS parent, inhrelid AS child, false AS viewed FROM pg_catalog.pg_inherits
	UNION ALL SELECT parent, child, true FROM reads JOIN relations v ON v.oid = parent AND v.relkind = 'v'
), reached AS (
	SELECT oid, pg_catalog.array_position($1::text[], nspname) - 1 AS world, false AS viewed FROM relations WHERE nspname = ANY ($1::text[])
	UNION SELECT b.child, o.world, o.viewed OR b.viewed FROM reached o JOIN read_by b ON b.parent = o.oid
), own AS (
	SELECT oid, world, pg_catalog.bool_and(viewed) AS viewed FROM reached GROUP BY 1, 2
), originals AS (
	SELECT oid FROM relations WHERE nspname <> ALL ($1::text[]) AND nspname NOT IN (SELECT nspname FROM others) AND NOT public
	AND relname IN (SELECT relname FROM relations WHERE nspname = ($1::text[])[1])
	UNION SELECT r.oid FROM originals o JOIN (
		SELECT parent, child FROM read_by
		UNION ALL SELECT child, parent FROM reads JOIN relations m ON m.oid = parent AND m.relkind = 'm'
	) AS next ON next.parent = o.oid JOIN relations r ON r.oid = next.child
	WHERE r.nspname <> ALL ($1::text[]) AND r.nspname NOT IN (SELECT nspname FROM others) AND NOT r.public
)`

// schemas returns the schemas of the copies, by their place: see Statement.Places.
func (o *Options) schemas() []string { return o.withTwin(o.Copies) }

// withTwin adds the schemas of the twin and the guard to those of D0 and the neighbours.
func (o *Options) withTwin(schemas []string) []string {
	return append(slices.Clone(schemas), o.twins()...)
}

// twins returns the schemas of the twin and the guard, if there are any.
func (o *Options) twins() (all []string) {
	if o.Twin != "" {
		if all = append(all, o.Twin); o.Guard != "" {
			all = append(all, o.Guard)
		}
	}
	return all
}

// kinds returns the arguments of kindsOfRelations; schemas are those of the copies.
func (o *Options) kinds(schemas []string) []string {
	return []string{array(schemas), array(o.SearchPath), array(o.Public), array(o.Originals)}
}

// relation is one that trials read.
type relation struct {
	name    string       // schema.table
	kind    relationKind // of one that is no copy of a world
	worlds  []int        // of whose copies it is a part
	viewed  map[int]bool // the worlds in which only a view of another schema makes it a part
	counted bool         // its counters show that it was read
	locked  bool         // the trials locked it, which they do before they read it
}

type relationKind string

const (
	kindPublic    relationKind = "public"    // listed in privacy.public
	kindExtension relationKind = "extension" // an extension owns it
	kindOriginal  relationKind = "original"  // see kindsOfRelations
	kindOther     relationKind = "other"     // in a schema that looks like the copy of another neighbour
	kindForeign   relationKind = "foreign"   // a foreign table, whose reads are not counted
	kindSequence  relationKind = "sequence"
	kindSystem    relationKind = "system" // of pg_catalog, with more than definitions
	kindLock      relationKind = "lock"   // an advisory lock, which is no relation
	kindTable     relationKind = "table"  // every other one
)

// title is what comes before the name of a relation.
func (k relationKind) title() string {
	switch k {
	case kindForeign:
		return "the foreign table "
	case kindSequence:
		return "the sequence "
	case kindSystem:
		return "the system catalog "
	}
	return ""
}

// of reports whether a relation is a part of the copies of a world.
func (t relation) of(world int) bool { return slices.Contains(t.worlds, world) }

// copyOf reports whether a relation whose reads are counted is a part of the copies of a world.
func (t relation) copyOf(world int) bool { return t.counted && t.of(world) && t.kind != kindForeign }

// relationsQuery returns the relations whose OIDs are in the array $5 and that hold something, and the foreign tables of
// the copies: OID, name, kind, worlds, and those of the worlds in which only views read it. Of the relations of the
// server itself, these are those with more than definitions.
const relationsQuery = kindsOfRelations + ` SELECT c.oid::pg_catalog.int8, pg_catalog.format('%s.%s', n.nspname, c.relname),
	CASE WHEN n.nspname = 'pg_catalog' THEN 'system' WHEN r.public THEN 'public'
		WHEN EXISTS (SELECT FROM pg_catalog.pg_depend d WHERE d.classid = 'pg_catalog.pg_class'::regclass AND d.objid = c.oid AND d.objsubid = 0 AND d.deptype = 'e') THEN 'extension'
		WHEN c.relkind = 'f' THEN 'foreign' WHEN c.relkind = 'S' THEN 'sequence'
		WHEN r.oid IN (SELECT oid FROM originals) THEN 'original' WHEN r.nspname IN (SELECT nspname FROM others) THEN 'other' ELSE 'table' END,
	coalesce((SELECT pg_catalog.string_agg(world::text, ' ') FROM own WHERE own.oid = c.oid), (pg_catalog.array_position($1::text[], n.nspname::text) - 1)::text, ''),
	coalesce((SELECT pg_catalog.string_agg(world::text, ' ') FROM own WHERE own.oid = c.oid AND viewed), '')
	FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace LEFT JOIN relations r ON r.oid = c.oid
	WHERE c.oid = ANY ($5::oid[]) AND (r.oid IS NOT NULL AND c.relkind IN ('r', 'm', 'f') OR c.relkind = 'S' AND pg_catalog.left(n.nspname::text, 3) <> 'pg_'
		OR n.nspname = 'pg_catalog' AND c.relkind IN ('r', 'v') AND c.relname <> ALL ($6::text[]))
	OR c.relkind = 'f' AND c.oid IN (SELECT oid FROM own) ORDER BY 2`

// relations returns the relations that OIDs identify, those whose counters show that they were read and those that were
// locked, without what holds nothing, and all foreign tables of the copies.
func (o *Options) relations(ctx context.Context, conn *pgconn.PgConn, counted []string, locked map[string]bool) (all []relation, err error) {
	oids := slices.AppendSeq(slices.Clone(counted), maps.Keys(locked))
	rows, err := ask(ctx, conn, opReads, 5, relationsQuery, append(o.kinds(o.schemas()), array(oids), array(builtin.Definitions()))...)
	if err != nil {
		return nil, err
	}
	for _, row := range rows {
		oid := string(row[0])
		t := relation{name: string(row[1]), kind: relationKind(row[2]), viewed: map[int]bool{}, counted: slices.Contains(counted, oid), locked: locked[oid]}
		for _, word := range strings.Fields(string(row[3])) {
			world, err := strconv.Atoi(word)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", opReads, err)
			}
			t.worlds = append(t.worlds, world)
			t.viewed[world] = slices.Contains(strings.Fields(string(row[4])), word)
		}
		all = append(all, t)
	}
	if locked["0"] {
		all = append(all, relation{name: "an advisory lock", kind: kindLock, locked: true})
	}
	return all, nil
}
