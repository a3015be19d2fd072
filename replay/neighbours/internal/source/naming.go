package source

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/dpwatch/dpwatch/internal/pg/catalog"
	"github.com/dpwatch/dpwatch/internal/pg/ident"
	"github.com/dpwatch/dpwatch/replay/neighbours/internal/spec"
)

// names assigns every relation, statistics object and function its name in the copies, which are one schema each.
// Configured relations keep their names. Other views, partitions, children and sequences that have one name in several
// schemas of the source get a number, except the first; so do indexes, statistics objects and functions. Two configured
// relations with one name are a fault.
func (d *Discovery) names() error {
	n := &naming{seen: map[string]ident.Table{}, note: d.Options.Notef}
	named := func(t ident.Table) bool {
		return slices.Contains(d.Options.Protected, t) ||
			slices.ContainsFunc(d.Options.Paths, func(p spec.Path) bool { return p.Table == t || p.To == t }) ||
			slices.ContainsFunc(d.Options.Measures, func(x spec.Measure) bool { return x.Column.Table == t })
	}
	var faults []error
	for _, r := range d.Model.Relations {
		if !named(r.Table) {
			continue
		}
		if other, ok := n.seen[r.Name]; ok {
			faults = append(faults, fmt.Errorf("%s and %s have one name, and a neighbour schema holds one relation of a name: rename one, or leave one out of privacy.protected", other, r.Table))
		}
		n.seen[r.Name], r.Copy = r.Table, r.Name
	}
	for _, r := range d.Model.Relations {
		if r.Copy == "" {
			r.Copy = n.assign(r.Table, map[catalog.RelationKind]string{catalog.KindView: "view", catalog.KindMaterialized: "materialized view"}[r.Kind])
		}
	}
	for i := range d.Model.Sequences {
		d.Model.Sequences[i].Copy = n.assign(d.Model.Sequences[i].Table, "sequence")
	}
	for _, r := range d.Model.Relations {
		for i := range r.Indexes {
			x := &r.Indexes[i]
			if name := n.number(ident.Table{Schema: r.Schema, Name: x.Name}); name != x.Name { // no query names it
				x.Definition = strings.Replace(x.Definition, "INDEX "+x.Quoted+" ON ", "INDEX "+ident.Quote(name)+" ON ", 1)
				x.Name = name
			}
		}
	}
	n.seen = map[string]ident.Table{} // statistics objects have a namespace of their own
	for i := range d.Model.Statistics {
		d.Model.Statistics[i].rename(n.number(d.Model.Statistics[i].Table))
	}
	n.functions(d.Model.Functions)
	return errors.Join(faults...)
}

// naming assigns free names.
type naming struct {
	seen map[string]ident.Table
	note func(format string, args ...any)
}

// number returns the name of t, with the first number that makes it free if necessary, and reserves it.
func (n *naming) number(t ident.Table) string {
	name := t.Name
	for i := 2; n.seen[name] != (ident.Table{}); i++ {
		name = fmt.Sprintf("%s_%d", strings.ToValidUTF8(t.Name[:min(len(t.Name), 58)], ""), i)
	}
	n.seen[name] = t
	return name
}

// assign is number with a note for a relation that gets another name; kind "" is a table.
func (n *naming) assign(t ident.Table, kind string) string {
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
	if s.Copy = name; name != s.Name {
		s.Definition = strings.Replace(s.Definition, "STATISTICS "+s.Quoted+" ", "STATISTICS "+ident.Table{Schema: s.Schema, Name: name}.SQL()+" ", 1)
	}
}

// functions numbers those that have one name in several schemas: in one schema they would be overloads, and calls would
// be resolved differently than at the source. Functions of one schema keep one name.
func (n *naming) functions(functions []Function) {
	n.seen = map[string]ident.Table{}
	given := map[ident.Table]string{}
	for i := range functions {
		f := &functions[i]
		if _, ok := given[f.Table]; !ok {
			given[f.Table] = n.assign(f.Table, "function")
		}
		f.Copy = given[f.Table]
	}
}
