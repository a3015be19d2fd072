package neighbours_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
)

// node is a table of a random forest: a plain table, a partition, or a child by inheritance.
type node struct {
	schema, name string
	tree         *tree
	parent       *node
	from, to     int     // range of the keys of its rows, and of those below it
	by           string  // PARTITION BY; "" = none
	spare        bool    // a DEFAULT partition, without bounds
	attached     bool    // created separately, with other columns before its own, and its own in another order
	foreign      []int   // the references that it declares as foreign keys
	path         []route // the references that the configuration declares as its paths
}

// route is a reference as a path: to a table, by a and d or only by a.
type route struct {
	ref  int
	to   *node
	wide bool
}

// reference is the target of the columns r0 and s0, r1 and s1 and so on: a and d of a row.
type reference struct {
	to      *node
	foreign bool // declared as a foreign key in some table
}

// forestRow holds the referenced key of each reference, -1 = NULL; half: d is NULL, so that a foreign key of two
// columns references nothing.
type forestRow struct {
	keys []int
	half []bool
}

// tree is a root with its partitions or children. Every node has the key columns a and d = a / 4, the columns of the
// references, and v.
type tree struct {
	kind  string  // "plain", "partitioned" or "inherited"
	wide  bool    // the primary key is (a, d), else a
	nodes []*node // parents before children
	refs  []reference
	rows  []forestRow // by a
}

// forest is a random database; a unit is a row, or all rows with the same d, of one of the tables of the first tree.
type forest struct {
	trees   []*tree
	unit    *node
	unitKey []string
	spare   bool
}

const treeRows = 16

func (n *node) within(top *node) bool {
	for ; n != nil; n = n.parent {
		if n == top {
			return true
		}
	}
	return false
}

func (n *node) sql() string { return n.schema + "." + n.name }

// holds reports whether the row a belongs to n or to a table below it; owns, whether n itself stores it.
func (n *node) holds(a int) bool { return a >= n.from && a < n.to }
func (n *node) owns(a int) bool  { return n.tree.leaf(a) == n }

// leaf returns the node that stores a row.
func (w *tree) leaf(a int) *node {
	var out *node
	for _, n := range w.nodes {
		if n.holds(a) {
			out = n
		}
	}
	return out
}

// references reports whether a row references another one by an edge: a foreign key, or a declared path.
func (w *tree) references(row forestRow, edge route, foreign bool) bool {
	a := row.keys[edge.ref]
	switch {
	case a < 0, edge.wide && row.half[edge.ref]:
		return false
	case foreign:
		return true
	}
	return edge.to.holds(a)
}

// edges returns the references that apply to the rows of a leaf: those of the nearest declared paths, otherwise the
// foreign keys at it and above it.
func (f *forest) edges(leaf *node) (edges []route, foreign bool) {
	if leaf.within(f.unit) {
		return nil, false
	}
	for n := leaf; n != nil; n = n.parent {
		if len(n.path) > 0 {
			return n.path, false
		}
	}
	for n := leaf; n != nil; n = n.parent {
		for _, j := range n.foreign {
			to := n.tree.refs[j].to
			edges = append(edges, route{j, to, to.tree.wide})
		}
	}
	if slices.ContainsFunc(edges, f.direct) { // a table with references to units belongs to these alone
		edges = slices.DeleteFunc(edges, func(e route) bool { return !f.direct(e) })
	}
	return edges, true
}

// direct reports whether a reference is one to the unit's table, or to one above or below it.
func (f *forest) direct(e route) bool { return e.to.within(f.unit) || f.unit.within(e.to) }

// left returns the values of a row in a neighbour: rows of the unit's table reference nobody instead of the unit.
func (f *forest) left(w *tree, a int, gone map[int]bool) []string {
	values, leaf := w.values(a), w.leaf(a)
	for n := leaf; n != nil && leaf.within(f.unit); n = n.parent {
		for _, j := range n.foreign {
			e := route{j, w.refs[j].to, w.refs[j].to.tree.wide}
			if f.direct(e) && w.references(w.rows[a], e, true) && gone[w.rows[a].keys[j]] {
				values[2+2*j+map[bool]int{true: 1}[e.wide]] = ""
			}
		}
	}
	return values
}

// gone returns the rows, by tree and key, that belong to a unit; key is its a, or its d if by is "d".
func (f *forest) gone(by string, key int) []map[int]bool {
	out := make([]map[int]bool, len(f.trees))
	index := map[*tree]int{}
	for i, w := range f.trees {
		out[i], index[w] = map[int]bool{}, i
	}
	for a := range treeRows {
		if f.unit.holds(a) && (by == "a" && a == key || by == "d" && a/4 == key) {
			out[0][a] = true
		}
	}
	for changed := true; changed; {
		changed = false
		for i, w := range f.trees {
			for a, row := range w.rows {
				edges, foreign := f.edges(w.leaf(a))
				for _, e := range edges {
					if !out[i][a] && w.references(row, e, foreign) && out[index[e.to.tree]][row.keys[e.ref]] {
						out[i][a], changed = true, true
					}
				}
			}
		}
	}
	return out
}

// randomForest generates trees; every leaf outside the unit's tables has an edge to an earlier tree, or to the unit's
// table. Only if spare is set may partitions be DEFAULT ones.
func randomForest(r *rand.Rand, spare bool) *forest {
	f := &forest{spare: spare}
	for i := range 3 + r.IntN(3) {
		w := &tree{kind: []string{"plain", "partitioned", "partitioned", "inherited"}[r.IntN(4)], wide: r.IntN(4) == 0}
		w.grow(r, &node{name: fmt.Sprintf("t%d", i), to: treeRows}, 0)
		for _, n := range w.nodes {
			n.spare = n.spare && f.spare
		}
		f.trees = append(f.trees, w)
		if i == 0 {
			f.chooseUnit(r)
		}
		w.refer(r, f, i)
		f.place(r, w)
	}
	for _, w := range f.trees {
		w.fill(r)
	}
	return f
}

// grow adds a node, and partitions or children below it.
func (w *tree) grow(r *rand.Rand, n *node, depth int) {
	n.tree, n.schema = w, []string{"public", "public", "app"}[r.IntN(3)]
	w.nodes = append(w.nodes, n)
	size := n.to - n.from
	if w.kind == "plain" || size < 8 || depth > 0 && r.IntN(2) == 0 {
		return
	}
	cut := n.from + 4*(1+r.IntN(size/4-1))
	if w.kind == "inherited" {
		w.grow(r, &node{name: n.name + "_c", parent: n, from: cut, to: n.to}, depth+1)
		return
	}
	n.by = []string{"RANGE (a)", "LIST (a)", "RANGE (d)", "LIST (d)"}[r.IntN(4)]
	w.wide = w.wide || strings.Contains(n.by, "d")
	w.grow(r, &node{name: n.name + "_a", parent: n, from: n.from, to: cut, attached: r.IntN(3) == 0}, depth+1)
	w.grow(r, &node{name: n.name + "_b", parent: n, from: cut, to: n.to, attached: r.IntN(3) == 0, spare: r.IntN(4) == 0}, depth+1)
}

// chooseUnit makes the first tree, or a part of it, the unit's table.
func (f *forest) chooseUnit(r *rand.Rand) {
	w := f.trees[0]
	f.unit, f.unitKey = w.nodes[0], []string{"a"}
	if r.IntN(5) == 0 {
		f.unit = w.nodes[r.IntN(len(w.nodes))]
	}
	switch r.IntN(6) {
	case 0:
		f.unitKey = []string{"d", "a"}
	case 1:
		if f.unit.to-f.unit.from >= 8 {
			f.unitKey = []string{"d"} // a unit of four rows
		}
	}
}

// refer generates the targets of the references of a tree, the i-th one. The first one is in an earlier tree, or is the
// unit's table.
func (w *tree) refer(r *rand.Rand, f *forest, i int) {
	pick := func(of *tree) reference {
		n := of.nodes[0]
		if r.IntN(4) == 0 {
			n = of.nodes[r.IntN(len(of.nodes))]
		}
		return reference{to: n}
	}
	if i == 0 {
		w.refs = []reference{{to: f.unit}, pick(w)}
		return
	}
	w.refs = []reference{pick(f.trees[r.IntN(i)]), pick(f.trees[r.IntN(i)]), pick(f.trees[r.IntN(i+1)])}
}

// place chooses where the references of a tree are declared.
func (f *forest) place(r *rand.Rand, w *tree) {
	draw := func() route {
		e := route{ref: r.IntN(len(w.refs)), wide: r.IntN(2) == 0}
		if e.to = w.refs[e.ref].to; r.IntN(3) == 0 {
			e.to = e.to.tree.nodes[0]
		}
		return e
	}
	for _, n := range w.nodes {
		for j := range w.refs {
			// The server does not allow a foreign key from a partitioned table to one of its own partitions.
			inside := w.kind == "partitioned" && w.refs[j].to != n && w.refs[j].to.within(n)
			if r.IntN(4) == 0 && !inside {
				n.foreign = append(n.foreign, j)
			}
		}
		if r.IntN(5) == 0 && !n.within(f.unit) {
			n.path = append(n.path, draw())
		}
	}
	for a := range treeRows {
		leaf := w.leaf(a)
		edges, foreign := f.edges(leaf)
		if leaf.within(f.unit) || slices.ContainsFunc(edges, func(e route) bool { return e.ref == 0 || e.to.tree != w }) {
			continue
		}
		if !foreign {
			for len(leaf.path) == 0 {
				leaf = leaf.parent
			}
			leaf.path = append(leaf.path, route{ref: 0, to: w.refs[0].to})
			continue
		}
		leaf.foreign = append(leaf.foreign, 0)
	}
	for _, n := range w.nodes {
		for _, j := range n.foreign {
			w.refs[j].foreign = true
		}
	}
}

// fill generates the rows. The target of a foreign key must exist: for a parent by inheritance, among its own rows.
func (w *tree) fill(r *rand.Rand) {
	for range treeRows {
		row := forestRow{}
		for _, ref := range w.refs {
			key := r.IntN(treeRows)
			for ref.foreign && !(ref.to.tree.kind == "inherited" && ref.to.owns(key) || ref.to.tree.kind != "inherited" && ref.to.holds(key)) {
				key = r.IntN(treeRows)
			}
			if r.IntN(3) == 0 {
				key = -1
			}
			row.keys, row.half = append(row.keys, key), append(row.half, r.IntN(6) == 0)
		}
		w.rows = append(w.rows, row)
	}
}
