package neighbours_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/dpwatch/dpwatch/internal/pgtemp/pgtest"
	"github.com/dpwatch/dpwatch/replay/neighbours"
)

// node is a table of a random forest: a plain table, a partition, or a child by inheritance.
type node struct {
	name          string
	parent        *node
	from, to      int   // the keys of its rows, and of those below it
	foreign, path []int // reference columns of the tree that it declares as foreign keys, or as paths of the configuration
}

// tree is a root with its partitions or children; every node has the columns a, the key, and r0, r1 and so on, which hold
// keys of other trees.
type tree struct {
	kind  string  // "plain", "partitioned" or "inherited"
	nodes []*node // the root first
	refs  []int   // of each reference column: the tree
	rows  [][]int // by key: of each reference column the key, -1 = NULL
}

const treeRows = 16

// leaf is the node that stores a row.
func (w *tree) leaf(a int) *node {
	var out *node
	for _, n := range w.nodes { // parents are before children
		if a >= n.from && a < n.to {
			out = n
		}
	}
	return out
}

// edges are the reference columns that count for the rows of a leaf: those of the nearest declared paths, or else the
// foreign keys at it and above it.
func (w *tree) edges(leaf *node) []int {
	for n := leaf; n != nil; n = n.parent {
		if len(n.path) > 0 {
			return n.path
		}
	}
	var out []int
	for n := leaf; n != nil; n = n.parent {
		out = append(out, n.foreign...)
	}
	return out
}

// randomForest draws trees; tree 0 is the unit's. Every leaf has an edge to an earlier tree.
func randomForest(r *rand.Rand) []*tree {
	forest := make([]*tree, 4)
	for i := range forest {
		name := fmt.Sprintf("t%d", i)
		root := &node{name: name, to: treeRows}
		w := &tree{kind: []string{"plain", "partitioned", "inherited"}[r.IntN(3)], nodes: []*node{root}}
		switch w.kind {
		case "partitioned":
			whole := &node{name: name + "_b", parent: root, from: 8, to: treeRows}
			w.nodes = append(w.nodes, &node{name: name + "_a", parent: root, to: 8}, whole,
				&node{name: name + "_b_a", parent: whole, from: 8, to: 12}, &node{name: name + "_b_b", parent: whole, from: 12, to: treeRows})
		case "inherited":
			child := &node{name: name + "_c", parent: root, from: 8, to: treeRows}
			w.nodes = append(w.nodes, child, &node{name: name + "_d", parent: child, from: 12, to: treeRows})
		}
		forest[i] = w
		if i > 0 {
			w.refs = []int{r.IntN(i), r.IntN(i), r.IntN(i + 1)}
			place(r, forest, w)
		}
		for range treeRows {
			row := make([]int, len(w.refs))
			for j := range row {
				if row[j] = r.IntN(treeRows); r.IntN(3) == 0 {
					row[j] = -1
				} else if forest[w.refs[j]].kind == "inherited" {
					row[j] %= 8 // a foreign key references the rows of the parent itself
				}
			}
			w.rows = append(w.rows, row)
		}
	}
	return forest
}

// place draws where the references of a tree are declared.
func place(r *rand.Rand, forest []*tree, w *tree) {
	for _, n := range w.nodes {
		for j := range w.refs {
			if r.IntN(4) == 0 {
				n.foreign = append(n.foreign, j)
			}
		}
		if r.IntN(5) == 0 {
			n.path = append(n.path, r.IntN(len(w.refs)))
		}
	}
	for a := range treeRows {
		leaf := w.leaf(a)
		if slices.ContainsFunc(w.edges(leaf), func(j int) bool { return forest[w.refs[j]] != w }) {
			continue
		}
		for n := leaf; n != nil; n = n.parent {
			if len(n.path) > 0 {
				n.path = append(n.path, 0)
				leaf = nil
				break
			}
		}
		if leaf != nil {
			leaf.foreign = append(leaf.foreign, 0)
		}
	}
}

func (w *tree) sql(forest []*tree) []string {
	var out, keys []string
	for _, n := range w.nodes {
		columns := "a int PRIMARY KEY"
		for j := range w.refs {
			columns += fmt.Sprintf(", r%d int", j)
		}
		switch {
		case w.kind == "plain" || n.parent == nil && w.kind == "inherited":
			out = append(out, fmt.Sprintf("CREATE TABLE %s (%s)", n.name, columns))
		case w.kind == "inherited":
			out = append(out, fmt.Sprintf("CREATE TABLE %s (PRIMARY KEY (a)) INHERITS (%s)", n.name, n.parent.name))
		default:
			head := fmt.Sprintf("CREATE TABLE %s (%s)", n.name, columns)
			if n.parent != nil {
				head = fmt.Sprintf("CREATE TABLE %s PARTITION OF %s FOR VALUES FROM (%d) TO (%d)", n.name, n.parent.name, n.from, n.to)
			}
			if slices.ContainsFunc(w.nodes, func(x *node) bool { return x.parent == n }) {
				head += " PARTITION BY RANGE (a)"
			}
			out = append(out, head)
		}
		for _, j := range n.foreign {
			keys = append(keys, fmt.Sprintf("ALTER TABLE %s ADD FOREIGN KEY (r%d) REFERENCES %s", n.name, j, forest[w.refs[j]].nodes[0].name))
		}
	}
	for a, row := range w.rows {
		values := strconv.Itoa(a)
		for _, ref := range row {
			values += ", " + strings.Replace(strconv.Itoa(ref), "-1", "NULL", 1)
		}
		out = append(out, fmt.Sprintf("INSERT INTO %s VALUES (%s)", w.leaf(a).name, values))
	}
	return append(out, keys...)
}

// gone are the rows, by tree and key, that belong to a unit.
func gone(forest []*tree, unit int) []map[int]bool {
	out := make([]map[int]bool, len(forest))
	for i := range out {
		out[i] = map[int]bool{}
	}
	out[0][unit] = true
	for changed := true; changed; {
		changed = false
		for i, w := range forest[1:] {
			for a, row := range w.rows {
				for _, j := range w.edges(w.leaf(a)) {
					if row[j] >= 0 && out[w.refs[j]][row[j]] && !out[i+1][a] {
						out[i+1][a], changed = true, true
					}
				}
			}
		}
	}
	return out
}

// TestRandomForests: where partitions, sub-partitions and children have keys of their own, and paths are declared for tables
// and for parts of them, D1 is D0 without exactly the rows that the declarations give to the unit, as computed in Go.
func TestRandomForests(t *testing.T) {
	t.Parallel()
	for seed := range 16 {
		t.Run(strconv.Itoa(seed), func(t *testing.T) {
			t.Parallel()
			forest := randomForest(rand.New(rand.NewPCG(uint64(seed), 2)))
			o := bare(pgtest.Database(t), pgtest.Database(t), "public.t0")
			o.Unit.Key, o.D1 = []string{"a"}, []string{"d1_1", "d1_2"}
			o.Choose = []neighbours.Choice{{Rule: neighbours.MostRows, K: 1}, {Rule: neighbours.Random, K: 1, Seed: int64(seed)}}
			o.Method = []neighbours.Method{neighbours.Copy, neighbours.View}[seed%4/3]
			for i, w := range forest {
				run(t, o.Source, w.sql(forest)...)
				if i > 0 {
					o.Protected = append(o.Protected, table("public."+w.nodes[0].name))
				}
				for _, n := range w.nodes {
					for _, j := range n.path {
						o.Paths = append(o.Paths, neighbours.Path{
							Table: table("public." + n.name), Columns: []string{fmt.Sprintf("r%d", j)},
							To: table("public." + forest[w.refs[j]].nodes[0].name), On: []string{"a"},
						})
					}
				}
			}
			if _, err := neighbours.Create(t.Context(), o); err != nil {
				if o.Method == neighbours.View && strings.Contains(err.Error(), "use neighbours.method copy") {
					return
				}
				t.Fatal(err)
			}
			verified(t, o)
			_, members, err := neighbours.List(t.Context(), o)
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range members {
				unit, err := strconv.Atoi(m.Key[0])
				if err != nil {
					t.Fatal(err)
				}
				compareForest(t, o.Target, m.Schema, forest, gone(forest, unit))
			}
		})
	}
}

// compareForest checks that the tables of a schema hold all rows but those that are gone.
func compareForest(t *testing.T, dsn, schema string, forest []*tree, gone []map[int]bool) {
	t.Helper()
	for i, w := range forest {
		var want []string
		for a := range w.rows {
			if !gone[i][a] {
				want = append(want, fmt.Sprintf("%s %02d", w.leaf(a).name, a))
			}
		}
		var got []string
		for _, n := range w.nodes {
			if w.kind == "partitioned" && slices.ContainsFunc(w.nodes, func(x *node) bool { return x.parent == n }) {
				continue
			}
			below := fmt.Sprintf("SELECT a FROM %s.%s WHERE a >= %d AND a < %d", schema, n.name, n.from, n.to)
			for _, x := range w.nodes { // without ONLY, which a view has not
				if x.parent == n {
					below += fmt.Sprintf(" EXCEPT SELECT a FROM %s.%s", schema, x.name)
				}
			}
			got = append(got, lines(t, dsn, fmt.Sprintf("SELECT '%s ' || lpad(a::text, 2, '0') FROM (%s) x", n.name, below))...)
		}
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(want, got) {
			t.Errorf("%s: got %v, want %v", schema, got, want)
		}
	}
}
