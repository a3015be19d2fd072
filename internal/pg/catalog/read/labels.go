package read

import "github.com/dpwatch/dpwatch/internal/pg/catalog"

// labels selects the SECURITY LABELs on columns and roles, with the empty string for what the other has.
const labels = `
	SELECT l.provider, n.nspname, c.relname, a.attname, '', l.label
	FROM pg_seclabel l JOIN pg_class c ON c.oid = l.objoid JOIN pg_namespace n ON n.oid = c.relnamespace
	JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = l.objsubid
	WHERE l.classoid = 'pg_class'::regclass AND l.objsubid > 0 AND NOT a.attisdropped AND ` + ordinary + `
	UNION ALL
	SELECT l.provider, '', '', '', r.rolname, l.label
	FROM pg_shseclabel l JOIN pg_roles r ON r.oid = l.objoid
	WHERE l.classoid = 'pg_authid'::regclass
	ORDER BY 1, 2, 3, 4, 5`

func (r *reader) labels() error {
	var l catalog.Label
	return r.each(labels, add(&r.catalog.Labels, &l), &l.Provider, &l.Table.Schema, &l.Table.Name, &l.Column, &l.Role, &l.Text)
}
