// Package owners finds the columns of a database that name a person: foreign keys to the table of the privacy unit, and
// columns without one whose values are keys of it.
//
// In: a session of the database, which is only read, and the unit. Out: candidates with the evidence for them, as lines
// of privacy.paths, and the columns that could not be examined. Values are compared in the server: none is returned, and
// none is in a message.
package owners

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/dpwatch/dpwatch/internal/pg/connect"
	"github.com/dpwatch/dpwatch/internal/pg/ident"
)

// Options are the unit and the bounds of the search.
type Options struct {
	Unit   ident.Table
	Key    []string      // of the unit; values are compared with a key of one column
	Tables []ident.Table // the tables that there are, without partitions and children; nil = all of the database
	Only   []ident.Table // of these, the tables to examine; nil = all
	Rows   int           // of each table are examined at most; 0 = 5000
	Time   time.Duration // the search takes at most; 0 = one minute
	Query  time.Duration // one query takes at most; 0 = 5 s
}

// Candidate is a column that may name a person. Several of one table add up.
type Candidate struct {
	Table   ident.Table
	Columns []string    // as privacy.paths has them: members[] is each element of an array, data->user_id a key of JSON
	Where   string      // the rows to which it applies; "" = all
	To      ident.Table // the unit's table, or another one whose rows belong to units
	On      []string    // the columns of To; nil = the unit's key
	Act     bool        // it names who did something with the row: see Act
	Keyed   bool        // there is a foreign key
	Sure    bool        // otherwise a person should look at it
	Why     []string    // the evidence, in words
	// Values is the number of distinct values that were examined, Found how many of them are values of To.
	Values, Found int64
}

// Column returns schema.table.column.
func (c Candidate) Column() string { return c.Table.String() + "." + strings.Join(c.Columns, ", ") }

// Direct reports whether it names the unit itself.
func (c Candidate) Direct(unit ident.Table) bool { return c.To == unit }

// Unread is a column that was not examined.
type Unread struct {
	Table  ident.Table
	Column string // "" = the whole table
	Why    string
}

// Found is what a search finds.
type Found struct {
	Candidates []Candidate // by table, the sure ones first
	// Addresses are the columns of the unit's table besides the key by which a person can be identified.
	Addresses []string
	Unread    []Unread
}

// Of returns the candidates of a table.
func (f *Found) Of(table ident.Table) (out []Candidate) {
	for _, c := range f.Candidates {
		if c.Table == table {
			out = append(out, c)
		}
	}
	return out
}

// Find searches the tables of a database for columns that name the unit. The transaction is only read, its search_path,
// statement_timeout and jit are changed, and savepoints keep it usable.
func Find(ctx context.Context, tx pgx.Tx, o Options) (*Found, error) {
	if o.Rows == 0 {
		o.Rows = 5000
	}
	if o.Time == 0 {
		o.Time = time.Minute
	}
	if o.Query == 0 {
		o.Query = 5 * time.Second
	}
	if err := connect.Run(ctx, tx, "SET LOCAL search_path TO pg_catalog", "SET LOCAL jit TO off"); err != nil {
		return nil, err
	}
	s := &search{o: o, tx: tx, places: map[ident.Table]*table{}}
	if err := s.read(ctx); err != nil {
		return nil, err
	}
	// The number of distinct values is estimated too low, and a nested loop over all units is slow.
	if err := connect.Run(ctx, tx, fmt.Sprintf("SET LOCAL statement_timeout TO %d", o.Query.Milliseconds()), "SET LOCAL enable_nestloop TO off"); err != nil {
		return nil, err
	}
	s.ends = time.Now().Add(o.Time)
	if s.unit = s.named(o.Unit); s.unit == nil {
		return nil, fmt.Errorf("the unit's table %s does not exist, or holds no columns", o.Unit)
	}
	if err := s.identify(ctx); err != nil {
		return nil, err
	}
	for _, t := range s.byFit() {
		if o.Only != nil && !slices.Contains(o.Only, t.Table) {
			continue
		}
		s.keyed(t)
		if err := s.examine(ctx, t); err != nil {
			return nil, err
		}
	}
	if err := connect.Run(ctx, tx, "SET LOCAL enable_nestloop TO DEFAULT"); err != nil {
		return nil, err
	}
	s.indirect()
	slices.SortStableFunc(s.found.Unread, func(a, b Unread) int { return ident.Compare(a.Table, b.Table) })
	slices.SortStableFunc(s.found.Candidates, func(a, b Candidate) int {
		switch {
		case a.Table != b.Table:
			return ident.Compare(a.Table, b.Table)
		case a.Sure != b.Sure && a.Sure:
			return -1
		case a.Sure != b.Sure:
			return 1
		}
		return strings.Compare(a.Column(), b.Column())
	})
	return &s.found, nil
}

// search is one search.
type search struct {
	o          Options
	tx         pgx.Tx
	ends       time.Time
	tables     []*table
	places     map[ident.Table]*table
	byWord     map[string][]*table // by the last word of the name
	unit       *table
	identities []identity // the unit's key first
	found      Found
}

// identity is a column of a table by whose values rows of other tables name its rows.
type identity struct {
	table  *table
	column column
	key    bool // of the table; otherwise an address
}

func (s *search) named(t ident.Table) *table { return s.places[t] }

// identify finds the columns of the unit's table by which a person can be identified.
func (s *search) identify(ctx context.Context) error {
	if len(s.o.Key) != 1 {
		return nil
	}
	if c := s.unit.column(s.o.Key[0]); c != nil && c.family() != "" {
		s.identities = append(s.identities, identity{s.unit, *c, true})
	}
	for _, c := range s.unit.columns {
		if c.Name == s.o.Key[0] || c.family() != "text" || c.Array || !c.Unique && !address(c.Name) {
			continue
		}
		if !c.Unique { // an address that many persons share identifies nobody
			var distinct, all int64
			err := s.query(ctx, func(tx pgx.Tx) error {
				return tx.QueryRow(ctx, fmt.Sprintf("SELECT count(DISTINCT v), count(v) FROM (SELECT %s AS v FROM %s) x", ident.Quote(c.Name), s.sample(s.unit))).Scan(&distinct, &all)
			})
			if err != nil || distinct*10 < all*9 || distinct < 2 {
				if err = s.unread(s.unit, c.Name, err); err != nil {
					return err
				}
				continue
			}
		}
		s.identities = append(s.identities, identity{s.unit, c, false})
		s.found.Addresses = append(s.found.Addresses, c.Name)
	}
	return nil
}

// byFit returns the tables, first those with a column that names a person by its name: the time of the search may end.
func (s *search) byFit() []*table {
	all := slices.Clone(s.tables)
	slices.SortStableFunc(all, func(a, b *table) int {
		of := func(t *table) int {
			best := Unfit
			for _, c := range t.columns {
				best = max(best, FitOf(c.Name, s.o.Unit.Name, strings.Join(s.o.Key, ",")))
			}
			return int(best)
		}
		return of(b) - of(a)
	})
	return all
}

// keyed adds the foreign keys of a table to the unit.
func (s *search) keyed(t *table) {
	for _, r := range t.refers {
		if r.To != s.o.Unit {
			continue
		}
		c := Candidate{Table: t.Table, Columns: r.Columns, To: r.To, Keyed: true, Sure: true, Why: []string{"a foreign key"}}
		if !slices.Equal(r.On, s.o.Key) {
			c.On = r.On
		}
		c.Act = len(r.Columns) == 1 && Act(r.Columns[0], r.To.Name)
		s.found.Candidates = append(s.found.Candidates, c)
	}
}

// indirect removes the candidates whose target does not lead to the unit, and those of tables in which a person's own
// column says whose rows they are.
func (s *search) indirect() {
	own, leads := map[ident.Table]bool{}, map[ident.Table]bool{s.o.Unit: true}
	for _, c := range s.found.Candidates {
		if c.To == s.o.Unit && c.Sure && !c.Act {
			own[c.Table], leads[c.Table] = true, true
		}
	}
	for grown := true; grown; {
		grown = false
		add := func(from, to ident.Table) {
			if leads[to] && !leads[from] {
				leads[from], grown = true, true
			}
		}
		for _, t := range s.tables {
			for _, r := range t.refers {
				if !(len(r.Columns) == 1 && Act(r.Columns[0], r.To.Name)) {
					add(t.Table, r.To)
				}
			}
		}
		for _, c := range s.found.Candidates {
			if c.Sure && !c.Act {
				add(c.Table, c.To)
			}
		}
	}
	s.found.Candidates = slices.DeleteFunc(s.found.Candidates, func(c Candidate) bool {
		return c.To != s.o.Unit && (own[c.Table] || !leads[c.To])
	})
}
