package oneoff

import "github.com/dpwatch/dpwatch/internal/read"

// issue returns a violation for the maintainers of the engine, with the values of rows.
func (f *question) issue(c read.Conclusion, charts *read.Charts) *read.Issue {
	x := &read.Issue{Report: c.Report.Reveal(), Statement: f.SQL, Parameters: f.Params, SQL: c.SQL, Charts: charts}
	if f.File != "" {
		x.Statement = c.SQL.D0
	}
	for _, sql := range f.Then {
		x.Then = append(x.Then, read.Following{Statement: sql})
	}
	if f.config != nil && f.config.Neighbours.Configured() && !f.Given["d0"] {
		x.Relation = f.config.Neighbours.Relation
	}
	return x
}
