package neighbours

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/dpwatch/dpwatch/internal/pg/ident"
)

// names assigns every relation, statistics object and function its name in the copies, which are one schema each.
// Configured relations keep their names. Other views, partitions, children and sequences that have one name in several
// schemas of the source get a number, except the first; so do indexes, statistics objects and functions. Two configured
// relations with one name are a fault.
func (d *discovery) names() error {
	n := &naming{seen: map[string]Table{}, note: d.o.note}
	named := func(t Table) bool {
		return slices.Contains(d.o.Protected, t) ||
			slices.ContainsFunc(d.o.Paths, func(p Path) bool { return p.Table == t || p.To == t }) ||
			slices.ContainsFunc(d.o.Measures, func(x Measure) bool { return x.Column.Table == t })
	}
	var faults []error
	for _, r := range d.m.relations {
		if !named(r.Table) {
			continue
		}
		if other, ok := n.seen[r.Name]; ok {
			faults = append(faults, fmt.Errorf("%s and %s have one name, and a neighbour schema holds one relation of a name: rename one, or leave one out of privacy.protected", other, r.Table))
		}
		n.seen[r.Name], r.copy = r.Table, r.Name
	}
	for _, r := range d.m.relations {
		if r.copy == "" {
			r.copy = n.assign(r.Table, map[byte]string{'v': "view", 'm': "materialized view"}[r.kind])
		}
	}
	for i := range d.m.sequences {
		d.m.sequences[i].copy = n.assign(d.m.sequences[i].Table, "sequence")
	}
	for _, r := range d.m.relations {
		for i := range r.indexes {
			x := &r.indexes[i]
			if name := n.number(Table{Schema: r.Schema, Name: x.name}); name != x.name { // no query names it
				x.definition = strings.Replace(x.definition, "INDEX "+x.quoted+" ON ", "INDEX "+ident.Quote(name)+" ON ", 1)
				x.name = name
			}
		}
	}
	n.seen = map[string]Table{} // statistics objects have a namespace of their own
	for i := range d.m.statistics {
		d.m.statistics[i].rename(n.number(d.m.statistics[i].Table))
	}
	n.functions(d.m.functions)
	return errors.Join(faults...)
}

// naming assigns free names.
type naming struct {
	seen map[string]Table
	note func(format string, args ...any)
}

// number returns the name of t, with the first number that makes it free if necessary, and reserves it.
func (n *naming) number(t Table) string {
	name := t.Name
	for i := 2; n.seen[name] != (Table{}); i++ {
		name = fmt.Sprintf("%s_%d", strings.ToValidUTF8(t.Name[:min(len(t.Name), 58)], ""), i)
	}
	n.seen[name] = t
	return name
}

// assign is number with a note for a relation that gets another name; kind "" is a table.
func (n *naming) assign(t Table, kind string) string {
	other := n.seen[t.Name]
	name := n.number(t)
	if name != t.Name {
		if kind == "" {
			kind = "table"
		}
		n.note("%s %s is named %s in the copies, where %s has its name", kind, t, name, other)
	}
	return name
}

// rename changes the name of a statistics object.
func (s *statistics) rename(name string) {
	if s.copy = name; name != s.Name {
		s.definition = strings.Replace(s.definition, "STATISTICS "+s.quoted+" ", "STATISTICS "+Table{Schema: s.Schema, Name: name}.SQL()+" ", 1)
	}
}

// functions numbers those that have one name in several schemas: in one schema they would be overloads, and calls would be
// resolved differently than at the source. Functions of one schema keep one name.
func (n *naming) functions(functions []function) {
	n.seen = map[string]Table{}
	given := map[Table]string{}
	for i := range functions {
		f := &functions[i]
		if _, ok := given[f.Table]; !ok {
			given[f.Table] = n.assign(f.Table, "function")
		}
		f.copy = given[f.Table]
	}
}
