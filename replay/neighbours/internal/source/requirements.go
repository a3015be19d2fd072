package source

import (
	"errors"
	"fmt"
	"strings"

	"github.com/dpwatch/dpwatch/internal/pg/ident"
)

// Rights returns the fault of a role that may not read the relations of find: every missing privilege, as GRANT
// statements.
func (d *Discovery) Rights() error {
	grants, err := d.texts(`WITH t AS (SELECT c.oid, c.relnamespace FROM pg_class c WHERE c.oid = ANY($1::oid[]) AND c.relkind IN ('r', 'p')),
		s AS (SELECT DISTINCT q.oid, q.relnamespace FROM pg_depend d JOIN pg_class q ON q.oid = d.objid AND q.relkind = 'S'
				WHERE d.classid = 'pg_class'::regclass AND d.refclassid = 'pg_class'::regclass AND d.deptype IN ('a', 'i') AND d.refobjid IN (SELECT oid FROM t)
			UNION SELECT q.oid, q.relnamespace FROM pg_attrdef x JOIN pg_depend d ON d.classid = 'pg_attrdef'::regclass AND d.objid = x.oid
				AND d.refclassid = 'pg_class'::regclass JOIN pg_class q ON q.oid = d.refobjid AND q.relkind = 'S' WHERE x.adrelid IN (SELECT oid FROM t)),
		name AS (SELECT c.oid, format('%I.%I', n.nspname, c.relname) AS name FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace)
		SELECT format('GRANT USAGE ON SCHEMA %s TO %I', string_agg(quote_ident(n.nspname), ', ' ORDER BY n.nspname), current_user) FROM pg_namespace n
			WHERE n.oid IN (SELECT relnamespace FROM t UNION SELECT relnamespace FROM s) AND NOT has_schema_privilege(n.oid, 'USAGE') HAVING count(*) > 0
		UNION ALL SELECT format('GRANT SELECT ON %s TO %I', string_agg(name, ', ' ORDER BY name), current_user) FROM t JOIN name USING (oid)
			WHERE NOT has_table_privilege(oid, 'SELECT') HAVING count(*) > 0
		UNION ALL SELECT format('GRANT SELECT ON SEQUENCE %s TO %I', string_agg(name, ', ' ORDER BY name), current_user) FROM s JOIN name USING (oid)
			WHERE NOT has_sequence_privilege(oid, 'SELECT') HAVING count(*) > 0`, d.oids)
	if err != nil {
		return err
	}
	var faults []error
	if len(grants) > 0 {
		faults = append(faults, &MissingRights{d.Tx.Conn().Config().User, d.Model.Database, grants})
	}
	// The setting row_security, which row_security_active ignores, is off here: if it were on, the server would hide
	// rows, which would be missing from the copy.
	hidden, err := d.texts("SELECT c.oid::regclass::text FROM pg_class c WHERE c.oid = ANY($1::oid[]) AND row_security_active(c.oid) ORDER BY 1", d.oids)
	if len(hidden) > 0 {
		faults = append(faults, fmt.Errorf("row-level security of %s may hide rows from role %s of neighbours.source, which would be missing from the copies: run at the source: ALTER ROLE %s BYPASSRLS; or use the owner", strings.Join(hidden, ", "), d.Tx.Conn().Config().User, ident.Quote(d.Tx.Conn().Config().User)))
	}
	return errors.Join(append(faults, err)...)
}

// Extension is an extension that the source's definitions need, and its schema.
type Extension struct{ Name, Schema string }

// Extensions finds the extensions whose types, operator classes, functions and collations the definitions need. Those
// that only a view needs are not included: the view can be left out.
func (d *Discovery) Extensions(m *Model) ([]Extension, error) {
	indexes := []uint32{}
	for _, r := range m.Relations {
		for _, i := range r.Indexes {
			indexes = append(indexes, i.OID)
		}
	}
	tables := []uint32{}
	for _, r := range m.Tables() {
		tables = append(tables, r.OID)
	}
	types, err := d.list("SELECT DISTINCT atttypid FROM pg_attribute WHERE attrelid = ANY($1::oid[]) AND attnum > 0 AND NOT attisdropped", tables)
	if err != nil {
		return nil, err
	}
	return rows[Extension](d, typeClosure+`, used(class, oid) AS (
			SELECT 'pg_type'::regclass::oid, oid FROM t
			UNION SELECT d.refclassid, d.refobjid FROM pg_depend d WHERE d.classid = 'pg_class'::regclass AND d.objid = ANY($2::oid[] || $3::oid[])
			UNION SELECT d.refclassid, d.refobjid FROM pg_attrdef x JOIN pg_depend d ON d.classid = 'pg_attrdef'::regclass AND d.objid = x.oid WHERE x.adrelid = ANY($2::oid[])
			UNION SELECT d.refclassid, d.refobjid FROM pg_constraint x JOIN pg_depend d ON d.classid = 'pg_constraint'::regclass AND d.objid = x.oid WHERE x.conrelid = ANY($2::oid[]))
		SELECT DISTINCT e.extname, n.nspname FROM used u JOIN pg_depend x ON x.classid = u.class AND x.objid = u.oid AND x.deptype = 'e' AND x.refclassid = 'pg_extension'::regclass
		JOIN pg_extension e ON e.oid = x.refobjid JOIN pg_namespace n ON n.oid = e.extnamespace ORDER BY 1`, types, tables, indexes)
}
