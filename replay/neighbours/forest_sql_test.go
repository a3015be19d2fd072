package neighbours_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// columns returns the columns of all tables of the tree, in the order of the root.
func (w *tree) columns() []string {
	out := []string{"a", "d"}
	for j := range w.refs {
		out = append(out, fmt.Sprintf("r%d", j), fmt.Sprintf("s%d", j))
	}
	return append(out, "v")
}

// values returns the values of a row, "" = NULL.
func (w *tree) values(a int) []string {
	out := []string{strconv.Itoa(a), strconv.Itoa(a / 4)}
	for j, key := range w.rows[a].keys {
		r, s := "", strconv.Itoa(j)
		if key >= 0 {
			r, s = strconv.Itoa(key), strconv.Itoa(key/4)
			if w.rows[a].half[j] {
				s = ""
			}
		}
		out = append(out, r, s)
	}
	return append(out, fmt.Sprintf("v%d", a))
}

func (w *tree) key() string {
	if w.wide {
		return "a, d"
	}
	return "a"
}

// create returns the statements that create a table.
func (n *node) create() []string {
	var columns []string
	for _, c := range n.tree.columns() {
		columns = append(columns, c+map[bool]string{true: " text", false: " int"}[c == "v"])
	}
	by := ""
	if n.by != "" {
		by = " PARTITION BY " + n.by
	}
	body, key := strings.Join(columns, ", "), "PRIMARY KEY ("+n.tree.key()+")"
	switch {
	case n.parent == nil:
		return []string{fmt.Sprintf("CREATE TABLE %s (%s, %s)%s", n.sql(), body, key, by)}
	case n.tree.kind == "inherited":
		return []string{fmt.Sprintf("CREATE TABLE %s (%s) INHERITS (%s)", n.sql(), key, n.parent.sql())}
	case !n.attached:
		return []string{fmt.Sprintf("CREATE TABLE %s PARTITION OF %s %s%s", n.sql(), n.parent.sql(), n.bounds(), by)}
	}
	slices.Reverse(columns)
	return []string{
		fmt.Sprintf("CREATE TABLE %s (old int, %s, older text, %s)%s", n.sql(), strings.Join(columns, ", "), key, by),
		fmt.Sprintf("ALTER TABLE %s DROP old, DROP older", n.sql()),
		fmt.Sprintf("ALTER TABLE %s ATTACH PARTITION %s %s", n.parent.sql(), n.sql(), n.bounds()),
	}
}

// bounds returns the bounds of a partition.
func (n *node) bounds() string {
	if n.spare {
		return "DEFAULT"
	}
	from, to := n.from, n.to
	if strings.Contains(n.parent.by, "d") {
		from, to = from/4, to/4
	}
	if strings.HasPrefix(n.parent.by, "RANGE") {
		return fmt.Sprintf("FOR VALUES FROM (%d) TO (%d)", from, to)
	}
	var values []string
	for i := from; i < to; i++ {
		values = append(values, strconv.Itoa(i))
	}
	return "FOR VALUES IN (" + strings.Join(values, ", ") + ")"
}

// sql returns the statements that create the forest: a script for tables and rows, then a statement for each foreign
// key.
func (f *forest) sql() []string {
	out, keys := []string{"CREATE SCHEMA app"}, []string(nil)
	for _, w := range f.trees {
		for _, n := range w.nodes {
			out = append(out, n.create()...)
			for i, j := range n.foreign {
				to, columns := w.refs[j].to, fmt.Sprintf("r%d", j)
				if to.tree.wide {
					columns += fmt.Sprintf(", s%d", j)
				}
				keys = append(keys, fmt.Sprintf("ALTER TABLE %s ADD FOREIGN KEY (%s) REFERENCES %s (%s)%s", n.sql(), columns, to.sql(), to.tree.key(),
					[]string{"", " DEFERRABLE INITIALLY DEFERRED", " ON DELETE CASCADE"}[(i+j+len(n.name))%3]))
			}
		}
		for a := range w.rows {
			values := w.values(a)
			for i, v := range values {
				if values[i] = "'" + v + "'"; v == "" {
					values[i] = "NULL"
				}
			}
			out = append(out, fmt.Sprintf("INSERT INTO %s (%s) VALUES (%s)", w.leaf(a).sql(), strings.Join(w.columns(), ", "), strings.Join(values, ", ")))
		}
	}
	return append([]string{strings.Join(out, ";\n")}, keys...)
}
