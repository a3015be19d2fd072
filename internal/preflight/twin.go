package preflight

import (
	"context"
	"fmt"
	"slices"

	"github.com/dpwatch/dpwatch/internal/pg/ident"
)

// again is what to do about a twin that cannot be used.
const again = "run `dpwatch neighbours create --replace`, create it by the same steps as D0, or set shadow.twin: none"

// uncontrolled is what follows from that: audits go on.
const uncontrolled = ": violations are not controlled, and noise that belongs to a copy of the data may look like a leak"

// twin checks that the second copy of D0 has every relation of D0 that the role may read, with the same columns. All
// faults are warnings: audits work without a twin.
func (s *session) twin(ctx context.Context, o *Options) {
	if o.Twin == "" {
		s.add("twin", "shadow.twin", Unchecked, "there is no twin of "+o.D0+uncontrolled, "create a second copy of "+o.D0+" by the same steps, and name it in shadow.twin")
		return
	}
	found, err := s.relations(ctx, []string{o.D0, o.Twin})
	if err != nil {
		s.failed("twin", err)
		return
	}
	var names []string
	for t := range found {
		if t.Schema == o.D0 {
			names = append(names, t.Name)
		}
	}
	slices.Sort(names)
	for _, name := range names {
		d0 := found[ident.Table{Schema: o.D0, Name: name}]
		table := ident.Table{Schema: o.Twin, Name: name}
		r, ok := found[table]
		switch {
		case !d0.Usage || !d0.Readable:
			continue
		case !ok:
			s.add("twin", table.String(), Warning, "does not exist"+uncontrolled, again)
		case !r.Usage || !r.Readable:
			s.add("twin", table.String(), Warning, "the role may not read it"+uncontrolled, fmt.Sprintf("GRANT USAGE ON SCHEMA %[1]s TO %[2]s\nGRANT SELECT ON ALL TABLES IN SCHEMA %[1]s TO %[2]s", ident.Quote(o.Twin), ident.Quote(s.cfg.User)))
		case r.Columns != d0.Columns:
			s.add("twin", table.String(), Warning, "its columns differ from "+d0.String()+uncontrolled, again)
		default:
			s.rowSecurity("twin", r)
			continue
		}
		return
	}
	if len(names) > 0 {
		s.add("twin", o.Twin, OK, "has the relations of "+o.D0+", alike and readable", "")
	}
}

// twin compares the number of rows of D0 and its twin.
func (r *rows) twin(ctx context.Context, tables []ident.Table, d0 map[ident.Table]number) {
	if r.o.Twin == "" {
		return
	}
	var wanted []ident.Table
	for _, t := range tables {
		wanted = append(wanted, ident.Table{Schema: r.o.Twin, Name: t.Name})
	}
	found, err := r.copiesOf(ctx, wanted, d0)
	if err != nil {
		r.report.failed("rows", err)
		return
	}
	for _, t := range tables {
		a, inD0 := d0[t]
		b, inTwin := found[ident.Table{Schema: r.o.Twin, Name: t.Name}]
		if inD0 && inTwin && a.n >= 0 && b.n >= 0 && !a.about && !b.about && a.n != b.n {
			r.report.add("rows", b.String(), Fault, "has another number of rows than "+a.String()+": one of them was changed, and every violation would be blocked", again)
		}
	}
}
