package source

// notCopied lists, by kind, objects of the source's copied relations that the copies do not have. $1 is the relations'
// OIDs, $2 the names of relations that a function's text may contain.
const notCopied = `SELECT format('not copied: %s (%s): %s', kind, string_agg(what, ', ' ORDER BY what), consequence) FROM (
	SELECT 1 AS n, 'row security policies' AS kind, format('%I on %s', p.polname, p.polrelid::regclass) AS what,
		'where they hide rows from the clients'' roles, the copies show them: a replay may read more than production does' AS consequence
		FROM pg_policy p WHERE p.polrelid = ANY($1::oid[])
	UNION ALL SELECT 2, 'security labels', format('%s', l.objoid::regclass), 'an engine that masks by labels needs them set on the copies'
		FROM pg_seclabel l WHERE l.classoid = 'pg_class'::regclass AND l.objoid = ANY($1::oid[])
	UNION ALL SELECT 3, 'functions that are not in SQL', format('%I.%I', n.nspname, f.proname), 'one that the shadow database has reads the same rows in every world'
		FROM pg_proc f JOIN pg_namespace n ON n.oid = f.pronamespace JOIN pg_language l ON l.oid = f.prolang
		WHERE l.lanname NOT IN ('sql', 'c', 'internal') AND f.prorettype <> 'trigger'::regtype AND ` + userFunction + `
		AND EXISTS (SELECT FROM unnest($2::text[]) t(name) WHERE position(lower(t.name) IN lower(f.prosrc)) > 0)
	UNION ALL SELECT 4, 'triggers', format('%I on %s', t.tgname, t.tgrelid::regclass), 'they act on writes alone'
		FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid WHERE NOT t.tgisinternal AND t.tgrelid = ANY($1::oid[]) AND NOT (c.relispartition
			AND EXISTS (SELECT FROM pg_inherits i JOIN pg_trigger p ON p.tgrelid = i.inhparent WHERE i.inhrelid = c.oid AND p.tgname = t.tgname))
	UNION ALL SELECT 5, 'rules', format('%I on %s', w.rulename, w.ev_class::regclass), 'they act on writes alone'
		FROM pg_rewrite w WHERE w.ev_type <> '1' AND w.ev_class = ANY($1::oid[])
	UNION ALL SELECT 6, 'tablespaces', format('%s of %s', s.spcname, c.oid::regclass), 'the copies lie in the default one'
		FROM pg_class c JOIN pg_tablespace s ON s.oid = c.reltablespace WHERE c.oid = ANY($1::oid[])
	UNION ALL SELECT 7, 'publications', format('%s of %s', p.pubname, r.prrelid::regclass), 'the copies are published nowhere'
		FROM pg_publication_rel r JOIN pg_publication p ON p.oid = r.prpubid WHERE r.prrelid = ANY($1::oid[])) x
	GROUP BY n, kind, consequence ORDER BY n`

// leftOut reports the objects that are not copied.
func (d *Discovery) leftOut() error {
	if d.Options.Note == nil {
		return nil
	}
	var names []string
	for _, r := range d.Model.Relations {
		names = append(names, r.Name)
	}
	notes, err := d.texts(notCopied, d.oids, names)
	for _, note := range notes {
		d.Options.Notef("%s", note)
	}
	return err
}
