package judge

import (
	"fmt"
	"maps"
	"slices"

	"github.com/dpwatch/dpwatch/internal/pg/catalog"
	"github.com/dpwatch/dpwatch/internal/pg/ident"
	"github.com/dpwatch/dpwatch/rewrite/internal/resolve"
	"github.com/dpwatch/dpwatch/rewrite/reasons"
)

// dependents finds, in the catalogs, the relations that read protected tables or are part of them. A view reads the
// original tables whatever schema is written before its name, and so does a partition. Such a relation is rewritten to
// the neighbours' own copies if each neighbour has one that reads only that neighbour; otherwise it is refused.
func (n *names) dependents(o Options, f *functions, j *checker) {
	if n.Source != nil {
		n.findNoise(o, f)
		n.bases = bases(n.Source, o.Protected, n.stored)
		n.addNoisy()
		for t := range n.bases {
			n.Protected[t.Name] = true
		}
	}
	var shadow *catalog.Index
	if j != nil {
		shadow = j.shadow
	}
	n.findReaders(o, f, shadow)
	n.addCallers()
	if shadow != nil {
		for _, t := range o.Protected {
			if fault := copyFault(j, t.Name, o.Neighbours, ""); fault != "" {
				n.refused[t] = noCopy(fault)
			}
		}
		for _, t := range o.Public {
			n.publicFault(j, t, o.Neighbours)
		}
	}
	if n.Source == nil {
		return
	}
	byName := map[string][]Table{}
	for t := range n.bases {
		byName[t.Name] = append(byName[t.Name], t)
	}
	for t := range n.bases {
		fault := n.unclaimed[t]
		switch r := n.Source.Relations[t]; {
		case fault != "":
		case n.Kinds[t] == resolve.KindPublic:
			fault = "is listed in privacy.public, but reads or is part of a protected table"
		case r.Kind == catalog.KindForeign:
			fault = "is a foreign table"
		case n.Kinds[t] == resolve.KindProtected:
			continue
		case shadow == nil:
			fault = n.reads(t) + ", and the neighbours' copies are not known"
		case len(byName[t.Name]) > 1:
			fault = n.reads(t) + ", and shares its name with another such relation"
		default:
			fault = copyFault(j, t.Name, o.Neighbours, n.reads(t))
		}
		if fault != "" {
			n.refused[t] = noCopy(fault)
			continue
		}
		n.Kinds[t] = resolve.KindProtected
	}
	n.copyFunctions(o, j)
	for t := range n.Source.Relations {
		if of, found := rowSecured(n.Source, t); found && n.Kinds[t] != resolve.KindUnknown && n.Kinds[t] != resolve.KindOther {
			detail := "has row level security, so its rows depend on the current role"
			if of != t {
				detail = "reads " + of.String() + ", which " + detail
			}
			n.refused[t] = fault{reasons.SessionDependent, detail, ""}
		}
	}
}

// rowSecured returns a relation whose row level security affects a query on t: t itself, or a relation that a view
// reads. A query on a parent table does not apply the policies of its partitions and children.
func rowSecured(x *catalog.Index, t Table) (Table, bool) {
	if r := x.Relations[t]; r.RowSecurity || r.Kind != catalog.KindView {
		return t, r.RowSecurity
	}
	for _, read := range ident.Sorted(x.Closure(t)) {
		if r := x.Relations[read]; r != nil && r.RowSecurity {
			return read, true
		}
	}
	return Table{}, false
}

// fault is why a listed or dependent relation cannot be read in a replay.
type fault struct {
	reason       reasons.Reason
	detail, hint string
}

func noCopy(detail string) fault {
	return fault{reasons.NoCopy, detail, "create it in shadow.d0 and in every schema of shadow.d1, so that it reads only the tables of that schema"}
}

// noReplay returns the fault of a public view.
func noReplay(detail string) fault {
	return fault{reasons.NoCopy, detail, "replace it in the shadow database by a materialized view, or by a table with the same rows"}
}

// bases returns, for every relation that reads a protected table or is part of one, these protected tables. It includes
// the protected tables themselves, if they exist. Relations that only read what is stored in one of stored are not
// among them.
func bases(x *catalog.Index, protected []Table, stored map[Table]bool) map[Table][]Table {
	listed := map[Table]bool{}
	found := map[Table]map[Table]bool{}
	add := func(t, base Table) {
		if found[t] == nil {
			found[t] = map[Table]bool{}
		}
		found[t][base] = true
	}
	for _, p := range protected {
		if x.Relations[p] == nil {
			continue
		}
		listed[p] = true
		for part := range x.Closure(p) { // partitions and children hold some of its rows
			if x.Relations[part] != nil {
				add(part, p)
			}
		}
	}
	// A relation that reads a part of a protected table reads protected data: follow all readers transitively.
	parts := maps.Clone(found)
	for t := range x.Relations {
		for read := range x.ClosureWithout(t, stored) {
			for base := range parts[read] {
				add(t, base)
			}
		}
	}
	out := make(map[Table][]Table, len(found))
	for t, set := range found {
		out[t] = ident.Sorted(set)
	}
	return out
}

// copyFault returns the fault of the neighbours' copies of a relation; "" = none. reads says why every neighbour must
// have one. It is "" for a listed table: a missing copy is found by the check before a replay, which waits for it.
func copyFault(j *checker, name string, neighbours []string, reads string) string {
	for _, schema := range neighbours {
		root := Table{Schema: schema, Name: name}
		if j.shadow.Relations[root] == nil {
			if reads != "" {
				return fmt.Sprintf("%s, and schema %s has no copy of it", reads, schema)
			}
			continue
		}
		if fault := j.relation(schema, root); fault != "" {
			return fmt.Sprintf("has a copy in schema %s that %s", schema, fault)
		}
	}
	return ""
}

// publicFault records a public relation that, in the shadow database, reads a neighbour or another server, or is a view
// that cannot be replayed.
func (n *names) publicFault(j *checker, public Table, neighbours []string) {
	for _, t := range ident.Sorted(j.shadow.Closure(public)) {
		r := j.shadow.Relations[t]
		switch {
		case slices.Contains(neighbours, t.Schema):
			n.refused[public] = fault{reasons.NoCopy, fmt.Sprintf("is listed in privacy.public, but reads %s in the shadow database", t), "list it in privacy.protected and give every neighbour a copy: a public table must be the same on every neighbour"}
			return
		case r != nil && r.Kind == catalog.KindForeign:
			n.refused[public] = fault{reasons.NoCopy, "reads a foreign table in the shadow database", "copy its rows into a table of the shadow database"}
			return
		case r == nil:
			continue
		}
		if fault := j.fault(j.view("", r, "")); fault != "" {
			n.refused[public] = noReplay("reads, in the shadow database, the view " + t.String() + ", which " + fault)
			return
		}
	}
}
