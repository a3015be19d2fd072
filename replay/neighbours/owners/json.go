package owners

import (
	"context"
	"fmt"
	"regexp"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/dpwatch/dpwatch/internal/pg/connect"
	"github.com/dpwatch/dpwatch/internal/pg/ident"
)

// jsonDepth is the depth to which JSON values are examined, jsonRows the number of rows.
const (
	jsonDepth = 4
	jsonRows  = 500
)

// plainKey are keys of JSON that are names. Others may be values: the names of persons, say.
var plainKey = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_-]{0,40}$`)

// json examines the keys of a column of JSON values.
func (s *search) json(ctx context.Context, t *table, c column) error {
	if c.Array {
		return nil
	}
	base := fmt.Sprintf(`WITH RECURSIVE s AS MATERIALIZED (SELECT %s::jsonb AS j FROM %s LIMIT %d),
		w(path, j, depth) AS (SELECT '{}'::text[], j, 0 FROM s WHERE j IS NOT NULL UNION ALL SELECT w.path || x.k, x.j, w.depth + 1 FROM w, LATERAL (
			SELECT k, j FROM jsonb_each(CASE jsonb_typeof(w.j) WHEN 'object' THEN w.j ELSE '{}' END) o(k, j)
			UNION ALL SELECT '', j FROM jsonb_array_elements(CASE jsonb_typeof(w.j) WHEN 'array' THEN w.j ELSE '[]' END) a(j)) x WHERE w.depth < %d),
		leaf AS MATERIALIZED (SELECT path, j #>> '{}' AS val FROM w WHERE jsonb_typeof(j) IN ('string', 'number') AND path <> '{}')`, ident.Quote(c.Name), s.sample(t), jsonRows, jsonDepth)
	return s.query(ctx, func(tx pgx.Tx) error {
		paths, err := connect.Values[[]string](ctx, tx, base+" SELECT path FROM leaf GROUP BY path ORDER BY count(*) DESC, path LIMIT 100")
		if err != nil {
			return err
		}
		var probes []probe
		list := []string{}
		for _, path := range paths {
			p, ok := jsonProbe(c, path)
			if !ok {
				continue
			}
			list = append(list, fmt.Sprintf("(%s::text[], %d)", arrayOf(path), len(probes)))
			probes = append(probes, p)
		}
		if len(probes) == 0 {
			return nil
		}
		found, err := connect.Structs[counts](ctx, tx, base+", v(n, val) AS (SELECT l.n, leaf.val FROM leaf JOIN (VALUES "+strings.Join(list, ", ")+") l(path, n) USING (path))"+s.counting("false"))
		for _, n := range found {
			if n.Length <= freeText {
				s.judge(t, probes[n.Probe], n)
			}
		}
		return err
	})
}

func arrayOf(path []string) string {
	all := make([]string, len(path))
	for i, k := range path {
		all[i] = ident.Literal(k)
	}
	return "ARRAY[" + strings.Join(all, ", ") + "]"
}

// jsonProbe returns the probe of a path of keys; it is false if one of them is no name.
func jsonProbe(c column, path []string) (probe, bool) {
	p := probe{column: c, path: c.Name, name: c.Name}
	p.column.Base = "text" // values are compared as text
	for _, key := range path {
		switch {
		case key == "":
			p.path += "[]"
		case !plainKey.MatchString(key):
			return p, false
		default:
			p.path += "->" + key
			p.name = key
		}
	}
	return p, true
}
