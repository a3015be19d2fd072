package source

import (
	"context"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/dpwatch/dpwatch/replay/neighbours/internal/spec"
)

// volatileDefaults is the beginning of a query that defines called (n, relation, name, what, proname): the volatile
// functions that materialised views (n = 1), generated columns (2) and defaults (3) of the relations $1 call. The server
// does not record that a definition depends on a built-in function, so the functions are found in the definitions; those
// of views that a materialised view reads count, too.
const volatileDefaults = `WITH RECURSIVE reads(top, view) AS (
		SELECT c.oid, c.oid FROM pg_class c WHERE c.relkind = 'm' AND c.oid = ANY($1::oid[])
		UNION SELECT r.top, v.oid FROM reads r JOIN pg_rewrite w ON w.ev_class = r.view JOIN pg_depend d ON d.classid = 'pg_rewrite'::regclass AND d.objid = w.oid
			AND d.refclassid = 'pg_class'::regclass JOIN pg_class v ON v.oid = d.refobjid AND v.relkind = 'v'
	), definitions(n, relation, name, tree) AS (
		SELECT 1, r.top, '', w.ev_action::text FROM reads r JOIN pg_rewrite w ON w.ev_class = r.view
		UNION ALL SELECT CASE WHEN a.attgenerated = '' THEN 3 ELSE 2 END, a.attrelid, a.attname::text, x.adbin::text
			FROM pg_attrdef x JOIN pg_attribute a ON a.attrelid = x.adrelid AND a.attnum = x.adnum WHERE x.adrelid = ANY($1::oid[])
	), called AS (
		SELECT DISTINCT n, relation, name, f.proname, f.pronamespace = 'pg_catalog'::regnamespace AS built_in, f.prosrc
		FROM definitions, regexp_matches(tree, ':(?:op)?funcid (\d+)', 'g') m JOIN pg_proc f ON f.oid = m[1]::oid
		WHERE f.provolatile = 'v' AND f.oid NOT IN ('nextval(regclass)'::regprocedure, 'clock_timestamp()'::regprocedure)
	)`

// drawnQuery returns the columns, by relation, whose default is noise: it calls random() or random_normal(), a function
// of $2, or one whose source names random(). Other functions are volatile because that is the default of CREATE FUNCTION,
// or return keys and times, and the rows may hold other values. So may text that is made of random(): a token. What is
// looked up or joined by stays as it is in the source, too: a column of a key, an index or a partition key.
const drawnQuery = volatileDefaults + `SELECT c.relation, c.name FROM called c JOIN pg_attribute a ON a.attrelid = c.relation AND a.attname = c.name JOIN pg_type t ON t.oid = a.atttypid
	WHERE c.n = 3 AND t.typcategory IN ('N', 'B')
	AND (c.built_in AND c.proname IN ('random', 'random_normal') OR c.proname = ANY($2::text[]) OR NOT c.built_in AND c.prosrc ~* '\mrandom(_normal)?\s*\(')
	AND NOT EXISTS (SELECT FROM pg_constraint k WHERE k.contype IN ('f', 'p', 'u', 'x')
		AND (k.conrelid = c.relation AND a.attnum = ANY(k.conkey) OR k.confrelid = c.relation AND a.attnum = ANY(k.confkey)))
	AND NOT EXISTS (SELECT FROM pg_index i WHERE i.indrelid = c.relation AND (a.attnum = ANY(i.indkey::int2[]) OR EXISTS (SELECT FROM pg_depend d
		WHERE d.classid = 'pg_class'::regclass AND d.objid = i.indexrelid AND d.refclassid = 'pg_class'::regclass AND d.refobjid = c.relation AND d.refobjsubid = a.attnum)))
	AND NOT EXISTS (SELECT FROM pg_partitioned_table p WHERE p.partrelid = c.relation AND (a.attnum = ANY(p.partattrs::int2[]) OR p.partexprs IS NOT NULL))
	GROUP BY c.relation, c.name`

// drawn marks the columns whose values every copy draws from their default, which is noise: copying them would give all
// copies the noise of the source, which hides that there is too little of it. A column of a measure or a path stays as
// it is in the source. A table with partitions or children has one in all of them or in none.
func (d *Discovery) drawn() error {
	found, err := rows[struct {
		Relation uint32
		Name     string
	}](d, drawnQuery, d.oids, append([]string{}, d.Options.Noise...))
	if err != nil || len(found) == 0 {
		return err
	}
	drawn := map[uint32][]string{}
	for _, c := range found {
		drawn[c.Relation] = append(drawn[c.Relation], c.Name)
	}
	for _, r := range d.Model.Tables() {
		var family []*Relation
		for _, x := range d.Model.Tables() {
			if d.Model.Top(x) == d.Model.Top(r) {
				family = append(family, x)
			}
		}
		for i := range r.Columns {
			c := &r.Columns[i]
			c.Drawn = slices.Contains(drawn[r.OID], c.Name) && !d.fixed(r, c.Name) && !slices.ContainsFunc(family, func(x *Relation) bool {
				return x.Column(c.Name) != nil && !slices.Contains(drawn[x.OID], c.Name) || len(x.Parents) > 1
			})
		}
		for i := 0; len(r.Stored()) == 0 && i < len(r.Columns); i++ {
			r.Columns[i].Drawn = false // the number of rows comes with a column
		}
	}
	return nil
}

// fixed reports whether the configuration names a column of a relation, or of one above it, for something that depends
// on its values.
func (d *Discovery) fixed(r *Relation, name string) bool {
	if d.Model.Measure(d.Options.Measures, r, name) != nil {
		return true
	}
	for _, p := range d.Options.Paths {
		from, to := d.Model.Named(p.Table), d.Model.Named(p.To)
		if from != nil && d.Model.Within(r, from) && slices.Contains(p.Columns, name) || to != nil && d.Model.Within(r, to) && slices.Contains(p.On, name) {
			return true
		}
	}
	unit := d.Model.Named(d.Options.Unit.Table)
	return unit != nil && d.Model.Within(r, unit) && slices.Contains(d.Options.Unit.Key, name)
}

// randomQuery lists, by kind, what volatile functions compute. $2 and $3 are the relations and names of the columns that
// every copy draws.
const randomQuery = volatileDefaults + `, found AS (SELECT CASE WHEN d.name IS NULL THEN n ELSE 4 END AS n,
		format('%s%s (%s)', relation::regclass, CASE WHEN called.name <> '' THEN '.' || quote_ident(called.name) END, string_agg(proname, ', ' ORDER BY proname)) AS one
		FROM called JOIN pg_class c ON c.oid = relation LEFT JOIN unnest($2::oid[], $3::text[]) d(relation, name) USING (relation, name)
		WHERE NOT c.relispartition GROUP BY relation, called.name, n, d.name)
	SELECT n <> 3, (ARRAY['materialised views', 'generated columns', 'columns with defaults', 'columns with defaults'])[n] || ' that volatile functions compute: ' || string_agg(one, ', ' ORDER BY one) || ': '
		|| CASE n WHEN 3 THEN 'their values are copied, so that noise in them is the same in every copy'
			ELSE 'each copy computes them anew, so that noise in them is one draw for each copy, and all trials of a copy see that draw: audit with --recreate, which makes copies for each trial, or audit the statements that fill them' END
	FROM found GROUP BY n ORDER BY n`

// Random is what volatile functions compute in the copies, before any trial: a text that names it. Anew reports that each
// copy draws its own.
type Random struct {
	Anew bool
	Text string
}

// FindRandom returns what may be random in a copy of the source, which tx reads.
func FindRandom(ctx context.Context, tx pgx.Tx, o *spec.Options) ([]Random, error) {
	silent := *o
	silent.Note = nil
	d := &Discovery{Ctx: ctx, Tx: tx, Options: &silent, Model: &Model{}, Dependents: true}
	if _, err := d.read(); err != nil {
		return nil, err
	}
	return d.findRandom()
}

func (d *Discovery) findRandom() ([]Random, error) {
	relations, names := []uint32{}, []string{}
	for _, r := range d.Model.Tables() {
		for _, c := range r.Columns {
			if c.Drawn {
				relations, names = append(relations, r.OID), append(names, c.Name)
			}
		}
	}
	return rows[Random](d, randomQuery, d.oids, relations, names)
}

// random notes what may be random in a copy.
func (d *Discovery) random() error {
	if d.Options.Note == nil {
		return nil
	}
	found, err := d.findRandom()
	for _, x := range found {
		d.Options.Notef("%s", x.Text)
	}
	return err
}
