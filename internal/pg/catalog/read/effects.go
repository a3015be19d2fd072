package read

import (
	"fmt"
	"strings"

	"github.com/dpwatch/dpwatch/internal/pg/catalog"
)

// parts selects the objects that belong to relations, and of which the server runs something: rules, triggers,
// defaults, generated columns, constraints, indexes, partition keys, policies and extended statistics. A column is one
// of which the default is used, or which an UPDATE must set for a trigger to fire. The text is that of an expression
// which may execute a text.
const effectParts = `
	part (relation, events, col, place, classid, objid, expression) AS (
		SELECT w.ev_class, CASE w.ev_type WHEN '1' THEN {Select} WHEN '2' THEN {Update} WHEN '3' THEN {Insert} ELSE {Delete} END, '', 0, 'pg_rewrite'::regclass, w.oid,
			CASE WHEN w.ev_type = '1' THEN '' ELSE pg_get_ruledef(w.oid) END
		FROM pg_rewrite w WHERE w.ev_enabled <> 'D'
		UNION ALL
		SELECT t.tgrelid, (t.tgtype & 4) / 4 * {Insert} + (t.tgtype & 8) / 8 * {Delete} + (t.tgtype & 32) / 32 * {Truncate}
			+ CASE WHEN t.tgtype & 16 > 0 AND t.tgattr = '' THEN {Update} ELSE 0 END, '', 0, 'pg_trigger'::regclass, t.oid, pg_get_triggerdef(t.oid)
		FROM pg_trigger t WHERE NOT t.tgisinternal AND t.tgenabled <> 'D'
		UNION ALL
		SELECT t.tgrelid, {Update}, a.attname, a.attnum, 'pg_trigger'::regclass, t.oid, pg_get_triggerdef(t.oid)
		FROM pg_trigger t JOIN pg_attribute a ON a.attrelid = t.tgrelid AND a.attnum = ANY (t.tgattr)
		WHERE NOT t.tgisinternal AND t.tgenabled <> 'D' AND t.tgtype & 16 > 0
		UNION ALL
		SELECT d.adrelid, CASE WHEN a.attgenerated = '' THEN {Insert} ELSE {Insert} + {Update} + {Alter} END, CASE WHEN a.attgenerated = '' THEN a.attname ELSE '' END,
			(SELECT count(*) FROM pg_attribute b WHERE b.attrelid = a.attrelid AND b.attnum BETWEEN 1 AND a.attnum AND NOT b.attisdropped),
			'pg_attrdef'::regclass, d.oid, pg_get_expr(d.adbin, d.adrelid)
		FROM pg_attrdef d JOIN pg_attribute a ON a.attrelid = d.adrelid AND a.attnum = d.adnum
		UNION ALL
		SELECT a.attrelid, {Insert}, a.attname, (SELECT count(*) FROM pg_attribute b WHERE b.attrelid = a.attrelid AND b.attnum BETWEEN 1 AND a.attnum AND NOT b.attisdropped),
			'pg_type'::regclass, t.oid, coalesce(t.typdefault, '')
		FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid WHERE t.typtype = 'd' AND t.typdefaultbin IS NOT NULL AND NOT a.atthasdef AND NOT a.attisdropped
		UNION ALL
		SELECT c.conrelid, {Insert} + {Update} + {Alter}, '', 0, 'pg_constraint'::regclass, c.oid, pg_get_constraintdef(c.oid)
		FROM pg_constraint c WHERE c.conrelid <> 0 AND c.contype IN ('c', 'x')
		UNION ALL
		SELECT i.indrelid, {Insert} + {Update} + {Analyze} + {Alter}, '', 0, 'pg_class'::regclass, i.indexrelid,
			CASE WHEN i.indexprs IS NULL AND i.indpred IS NULL THEN '' ELSE pg_get_indexdef(i.indexrelid) END
		FROM pg_index i
		UNION ALL
		SELECT c.oid, {Insert} + {Update} + {Alter}, '', 0, 'pg_class'::regclass, c.oid, '' FROM pg_class c WHERE c.relkind IN ('r', 'p', 'f')
		UNION ALL
		SELECT s.stxrelid, {Analyze}, '', 0, 'pg_statistic_ext'::regclass, s.oid, '' FROM pg_statistic_ext s
		UNION ALL
		SELECT p.polrelid, CASE p.polcmd WHEN 'r' THEN {Select} WHEN 'a' THEN {Insert} WHEN 'w' THEN {Update} WHEN 'd' THEN {Delete} ELSE {Select} + {Insert} + {Update} + {Delete} END,
			'', 0, 'pg_policy'::regclass, p.oid, concat(pg_get_expr(p.polqual, p.polrelid), ' ', pg_get_expr(p.polwithcheck, p.polrelid))
		FROM pg_policy p JOIN pg_class c ON c.oid = p.polrelid WHERE c.relrowsecurity
	)`

// effects selects what these objects use according to pg_depend, other than their own relation: functions, directly,
// through an operator or through the comparisons of an index ('f'), types ('t'), and relations, which the actions of
// rules may also change ('r', 'w'); the tables that a foreign key changes together with another ('w'); and expressions
// that may execute a text ('x').
const effects = `
	WITH ` + effectParts + `, uses AS (
		SELECT p.relation, CASE WHEN d.refclassid = 'pg_opclass'::regclass THEN p.events | {Select} ELSE p.events END AS events, p.col, p.place, p.classid, d.refclassid, d.refobjid
		FROM part p JOIN pg_depend d ON d.classid = p.classid AND d.objid = p.objid
		WHERE NOT (d.refclassid = 'pg_class'::regclass AND d.refobjid = p.relation)
	), found AS (
		SELECT relation, events, col, place, 'f' AS kind, refobjid AS obj FROM uses WHERE refclassid = 'pg_proc'::regclass AND NOT (classid = 'pg_rewrite'::regclass AND events = {Select})
		UNION
		SELECT u.relation, u.events, u.col, u.place, 'f', o.oprcode::oid FROM uses u JOIN pg_operator o ON o.oid = u.refobjid
		WHERE u.refclassid = 'pg_operator'::regclass AND NOT (u.classid = 'pg_rewrite'::regclass AND u.events = {Select})
		UNION
		SELECT u.relation, u.events, u.col, u.place, 'f', a.amproc::oid FROM uses u JOIN pg_opclass c ON c.oid = u.refobjid JOIN pg_amproc a ON a.amprocfamily = c.opcfamily
		WHERE u.refclassid = 'pg_opclass'::regclass
		UNION
		SELECT u.relation, u.events, u.col, u.place, 'f', o.oprcode::oid FROM uses u JOIN pg_opclass c ON c.oid = u.refobjid JOIN pg_amop a ON a.amopfamily = c.opcfamily JOIN pg_operator o ON o.oid = a.amopopr
		WHERE u.refclassid = 'pg_opclass'::regclass
		UNION
		SELECT u.relation, u.events, u.col, u.place, 't', coalesce(nullif(t.typelem, 0), t.oid) FROM uses u JOIN pg_type t ON t.oid = u.refobjid WHERE u.refclassid = 'pg_type'::regclass
		UNION
		SELECT u.relation, u.events, u.col, u.place, k.kind, u.refobjid FROM uses u CROSS JOIN (VALUES ('r'), ('w')) k (kind)
		WHERE u.refclassid = 'pg_class'::regclass AND (k.kind = 'r' OR u.classid = 'pg_rewrite'::regclass) AND u.classid <> 'pg_class'::regclass AND u.events <> {Select}
		UNION
		SELECT c.confrelid, CASE WHEN c.confdeltype IN ('c', 'n', 'd') THEN {Delete} ELSE 0 END + CASE WHEN c.confupdtype IN ('c', 'n', 'd') THEN {Update} ELSE 0 END, '', 0, 'w', c.conrelid
		FROM pg_constraint c WHERE c.contype = 'f' AND (c.confdeltype IN ('c', 'n', 'd') OR c.confupdtype IN ('c', 'n', 'd'))
	), named AS (
		SELECT f.relation, f.events, f.col, f.place, f.kind, n.nspname, p.proname AS name, '' AS expression FROM found f JOIN pg_proc p ON p.oid = f.obj JOIN pg_namespace n ON n.oid = p.pronamespace WHERE f.kind = 'f'
		UNION ALL
		SELECT f.relation, f.events, f.col, f.place, f.kind, n.nspname, t.typname, '' FROM found f JOIN pg_type t ON t.oid = f.obj JOIN pg_namespace n ON n.oid = t.typnamespace WHERE f.kind = 't'
		UNION ALL
		SELECT f.relation, f.events, f.col, f.place, f.kind, n.nspname, c.relname, '' FROM found f JOIN pg_class c ON c.oid = f.obj JOIN pg_namespace n ON n.oid = c.relnamespace
		WHERE f.kind IN ('r', 'w') AND c.relkind IN ('r', 'p', 'v', 'm', 'f')
		UNION ALL
		SELECT relation, events, col, place, 'x', '', '', expression FROM part WHERE expression ~* '_to_xml|ts_stat|ts_rewrite|crosstab|connectby|dblink'
	)
	SELECT x.relation, x.events::int, x.col, x.place::int, x.kind, x.nspname, x.name, x.expression
	FROM named x JOIN pg_class c ON c.oid = x.relation JOIN pg_namespace n ON n.oid = c.relnamespace
	WHERE x.nspname <> 'pg_catalog' AND x.events <> 0 AND ` + ordinary + ` ORDER BY 1, 2, 3, 5, 6, 7, 8`

// events puts the values of catalog.Event into a query.
var events = strings.NewReplacer(
	"{Select}", fmt.Sprint(catalog.Select), "{Insert}", fmt.Sprint(catalog.Insert), "{Update}", fmt.Sprint(catalog.Update), "{Delete}", fmt.Sprint(catalog.Delete),
	"{Truncate}", fmt.Sprint(catalog.Truncate), "{Analyze}", fmt.Sprint(catalog.Analyze), "{Alter}", fmt.Sprint(catalog.Alter),
)

// effects reads the effects of relations, whose places are by OID.
func (r *reader) effects(places map[uint32]int) error {
	var oid uint32
	var e catalog.Effect
	var kind, text string
	var t catalog.Table
	return r.each(events.Replace(effects), func() error {
		at, ok := places[oid]
		if !ok {
			return nil
		}
		all := &r.catalog.Relations[at].Effects
		if last := len(*all) - 1; last < 0 || (*all)[last].Events != e.Events || (*all)[last].Column != e.Column {
			*all = append(*all, e)
		}
		to := &(*all)[len(*all)-1]
		switch kind {
		case "f":
			to.Calls = append(to.Calls, t)
		case "t":
			to.Types = append(to.Types, t)
		case "r":
			to.Reads = append(to.Reads, t)
		case "w":
			to.Writes = append(to.Writes, t)
		case "x":
			to.Text += text + "\n"
		}
		return nil
	}, &oid, &e.Events, &e.Column, &e.Place, &kind, &t.Schema, &t.Name, &text)
}

// eventTriggers selects the functions of event triggers, with the command tags for which they run.
const eventTriggers = `
	SELECT e.evtevent, coalesce(e.evttags, '{}'), n.nspname, f.proname
	FROM pg_event_trigger e JOIN pg_proc f ON f.oid = e.evtfoid JOIN pg_namespace n ON n.oid = f.pronamespace
	WHERE e.evtenabled <> 'D' ORDER BY e.evtname`

func (r *reader) eventTriggers() error {
	var e catalog.EventTrigger
	return r.each(eventTriggers, add(&r.catalog.EventTriggers, &e), &e.Event, &e.Tags, &e.Function.Schema, &e.Function.Name)
}
