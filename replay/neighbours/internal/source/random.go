package source

// randomQuery lists, by kind, what the source computes with volatile functions, which may draw noise. $1 is the OIDs of
// the relations. The server does not record that a definition depends on a built-in function, so the functions are found
// in the definitions; those of views that a materialised view reads count, too.
const randomQuery = `WITH RECURSIVE reads(top, view) AS (
		SELECT c.oid, c.oid FROM pg_class c WHERE c.relkind = 'm' AND c.oid = ANY($1::oid[])
		UNION SELECT r.top, v.oid FROM reads r JOIN pg_rewrite w ON w.ev_class = r.view JOIN pg_depend d ON d.classid = 'pg_rewrite'::regclass AND d.objid = w.oid
			AND d.refclassid = 'pg_class'::regclass JOIN pg_class v ON v.oid = d.refobjid AND v.relkind = 'v'
	), definitions(n, what, tree) AS (
		SELECT 1, format('%s', r.top::regclass), w.ev_action::text FROM reads r JOIN pg_rewrite w ON w.ev_class = r.view
		UNION ALL SELECT CASE WHEN a.attgenerated = '' THEN 3 ELSE 2 END, format('%s.%I', a.attrelid::regclass, a.attname), x.adbin::text
			FROM pg_attrdef x JOIN pg_attribute a ON a.attrelid = x.adrelid AND a.attnum = x.adnum JOIN pg_class c ON c.oid = x.adrelid
			WHERE x.adrelid = ANY($1::oid[]) AND NOT c.relispartition
	), called AS (
		SELECT DISTINCT n, what, f.proname FROM definitions, regexp_matches(tree, ':(?:op)?funcid (\d+)', 'g') m JOIN pg_proc f ON f.oid = m[1]::oid
		WHERE f.provolatile = 'v' AND f.oid NOT IN ('nextval(regclass)'::regprocedure, 'clock_timestamp()'::regprocedure)
	), found AS (SELECT n, format('%s (%s)', what, string_agg(proname, ', ' ORDER BY proname)) AS one FROM called GROUP BY n, what)
	SELECT (ARRAY['materialised views', 'generated columns', 'columns with defaults'])[n] || ' that volatile functions compute: ' || string_agg(one, ', ' ORDER BY one) || ': '
		|| CASE n WHEN 3 THEN 'their values are copied, so that noise in them is the same in every copy'
			ELSE 'each copy computes them anew, so that noise in them is one draw for each copy, and all trials of a copy see that draw: audit the statements that fill them' END
	FROM found GROUP BY n ORDER BY n`

// random reports what may be random in a copy, before any trial.
func (d *Discovery) random() error {
	if d.Options.Note == nil {
		return nil
	}
	notes, err := d.texts(randomQuery, d.oids)
	for _, note := range notes {
		d.Options.Notef("%s", note)
	}
	return err
}
