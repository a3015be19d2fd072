package engine

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/dpwatch/dpwatch/internal/pg/builtin"
	"github.com/dpwatch/dpwatch/internal/pg/connect"
)

// traits are what results depend on besides functions: of the server, of the database, and of its sessions.
type traits struct {
	fixed    map[string]string // version, encoding, collation, extensions
	settings map[string]string // the initial ones of the reader's sessions
	own      map[string]bool   // those of settings that only the reader's role or connection has
	// overrides are the settings of ALTER DATABASE, with the role "", and of ALTER ROLE.
	overrides map[string]map[string]string
}

// compared are the settings that change results and that no replay sets by itself, besides builtin.Forms.
var compared = slices.Concat(builtin.Forms(), []string{
	"standard_conforming_strings", "backslash_quote", "lc_messages", "session_preload_libraries", "local_preload_libraries", "default_transaction_isolation",
})

// traitsQuery returns kinds, names and values. The version of the collation is the one that the operating system has.
const traitsQuery = `SELECT 'fixed', 'server version', pg_catalog.split_part(pg_catalog.current_setting('server_version'), ' ', 1)
	UNION ALL SELECT 'fixed', CASE d.key WHEN 'datcollate' THEN 'collation' WHEN 'datctype' THEN 'character types' WHEN 'datlocprovider' THEN 'provider of the collation'
			WHEN 'daticurules' THEN 'rules of the collation' WHEN 'encoding' THEN 'encoding' ELSE 'locale' END,
		CASE d.key WHEN 'encoding' THEN pg_catalog.pg_encoding_to_char(d.value::int) ELSE d.value END
		FROM pg_catalog.pg_database b, pg_catalog.jsonb_each_text(pg_catalog.to_jsonb(b)) d
		WHERE b.datname = pg_catalog.current_database() AND d.value IS NOT NULL
		AND d.key IN ('encoding', 'datcollate', 'datctype', 'datlocprovider', 'daticulocale', 'datlocale', 'daticurules')
	UNION ALL SELECT 'fixed', 'version of the collation', {collation} FROM pg_catalog.pg_database WHERE datname = pg_catalog.current_database() AND {collation} IS NOT NULL
	UNION ALL SELECT 'extension', extname, extversion FROM pg_catalog.pg_extension
	UNION ALL SELECT CASE WHEN source IN ('user', 'database user', 'client', 'session', 'interactive') THEN 'own' ELSE 'setting' END, pg_catalog.lower(name), reset_val
		FROM pg_catalog.pg_settings WHERE pg_catalog.lower(name) = ANY ($1) AND reset_val IS NOT NULL
	UNION ALL SELECT 'override ' || coalesce(r.rolname, ''), pg_catalog.lower(pg_catalog.split_part(entry, '=', 1)), pg_catalog.substr(entry, pg_catalog.strpos(entry, '=') + 1)
		FROM (SELECT DISTINCT ON (s.setrole, pg_catalog.split_part(entry, '=', 1)) s.setrole, entry FROM pg_catalog.pg_db_role_setting s, pg_catalog.unnest(s.setconfig) entry
			WHERE s.setdatabase IN (0, (SELECT oid FROM pg_catalog.pg_database WHERE datname = pg_catalog.current_database()))
			ORDER BY s.setrole, pg_catalog.split_part(entry, '=', 1), s.setdatabase DESC) s LEFT JOIN pg_catalog.pg_roles r ON r.oid = s.setrole
		WHERE (s.setrole = 0 OR r.oid IS NOT NULL) AND pg_catalog.lower(pg_catalog.split_part(entry, '=', 1)) = ANY ($1)
	ORDER BY 1, 2, 3`

// withCollation completes a query on pg_database for a version of the server.
func withCollation(sql string, version int) string {
	collation := "NULL::text"
	if version >= 150000 {
		collation = "pg_catalog.pg_database_collation_actual_version(oid)"
	}
	return strings.ReplaceAll(sql, "{collation}", collation)
}

func readTraits(ctx context.Context, tx pgx.Tx, version int) (*traits, error) {
	t := &traits{fixed: map[string]string{}, settings: map[string]string{}, own: map[string]bool{}, overrides: map[string]map[string]string{}}
	rows, err := tx.Query(ctx, withCollation(traitsQuery, version), compared)
	if err != nil {
		return nil, err
	}
	var kind, name, value string
	_, err = pgx.ForEachRow(rows, []any{&kind, &name, &value}, func() error {
		role, isOverride := strings.CutPrefix(kind, "override ")
		switch {
		case isOverride && t.overrides[role] == nil:
			t.overrides[role] = map[string]string{name: value}
		case isOverride:
			t.overrides[role][name] = value
		case kind == "fixed":
			t.fixed[name] = value
		case kind == "extension":
			t.fixed["extension "+name] = value
		default:
			t.settings[name], t.own[name] = value, kind == "own"
		}
		return nil
	})
	return t, err
}

// Unlike returns how the shadow database differs from production in what results of every query depend on: the version
// of the server, encoding, collation, versions of extensions that both have, and the settings of the sessions of a
// user, "" = of any. replayed are the settings that trials have from the client's session. Snapshots of an engine that
// was asked for its version are not compared.
func Unlike(production, shadow *Snapshot, user string, replayed map[string]string) (all []string) {
	if production == nil || shadow == nil || production.traits == nil || shadow.traits == nil {
		return nil
	}
	p, s := production.traits, shadow.traits
	differ := func(name, there, here string) {
		all = append(all, fmt.Sprintf("%s (%s in production, %s in the shadow database)", name, there, here))
	}
	for _, name := range slices.Sorted(maps.Keys(p.fixed)) {
		if here, ok := s.fixed[name]; ok && here != p.fixed[name] {
			differ(name, p.fixed[name], here)
		}
	}
	for _, name := range compared {
		there, known := p.inEffect(user, name)
		here, ok := s.settings[name]
		if _, set := replayed[name]; !set && known && ok && here != there {
			differ(name, there, here)
		}
	}
	return all
}

// inEffect returns the initial value of a setting in the sessions of a user; known is false if it cannot be seen, or if
// replays set it as it is in such sessions.
func (t *traits) inEffect(user, name string) (value string, known bool) {
	value, known = t.settings[name], !t.own[name]
	if _, seen := t.settings[name]; !seen {
		known = false
	}
	for _, role := range []string{"", user} {
		if v, ok := t.overrides[role][name]; ok {
			value, known = v, !builtin.AffectsForm(name)
		}
	}
	return value, known
}

// UnlikeForAnyone is Unlike for every role of production that has settings of its own, with what replays set.
func UnlikeForAnyone(production, shadow *Snapshot) (all []string) {
	all = Unlike(production, shadow, "", nil)
	if production == nil || production.traits == nil {
		return all
	}
	for _, role := range slices.Sorted(maps.Keys(production.traits.overrides)) {
		for _, text := range Unlike(production, shadow, role, nil) {
			if !slices.Contains(all, text) {
				all = append(all, text+" for "+role)
			}
		}
	}
	return all
}

// traitsFingerprint returns a text that changes with what readTraits reads.
func traitsFingerprint(ctx context.Context, conn connect.Conn, version int) (string, error) {
	return connect.Value[string](ctx, conn, "SELECT pg_catalog.md5(coalesce(pg_catalog.string_agg(x::text, ' '), '')) FROM ("+withCollation(traitsQuery, version)+") x", compared)
}
