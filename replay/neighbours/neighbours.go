package neighbours

import (
	"context"
	"errors"

	"github.com/dpwatch/dpwatch/internal/pg/ident"
	"github.com/dpwatch/dpwatch/replay/neighbours/internal/build"
	"github.com/dpwatch/dpwatch/replay/neighbours/internal/session"
	"github.com/dpwatch/dpwatch/replay/neighbours/internal/shadow"
	"github.com/dpwatch/dpwatch/replay/neighbours/internal/source"
	"github.com/dpwatch/dpwatch/replay/neighbours/internal/spec"
	"github.com/dpwatch/dpwatch/replay/neighbours/internal/verify"
)

// The types that describe a set of copies and the results of the commands.
type (
	Table    = ident.Table // the name of a relation as stored in the catalog: folded, without quotes
	Options  = spec.Options
	Relation = spec.Relation
	Method   = spec.Method
	Rule     = spec.Rule
	Choice   = spec.Choice
	Column   = spec.Column
	Unit     = spec.Unit
	Path     = spec.Path
	Measure  = spec.Measure
	Progress = spec.Progress

	Set              = shadow.Set
	Member           = shadow.Member
	Plan             = build.Plan
	PlannedTable     = build.PlannedTable
	PlannedNeighbour = build.PlannedNeighbour
	Report           = verify.Report
	Difference       = verify.Difference
	TableLoss        = verify.TableLoss
	Twin             = verify.Twin
	Recreation       = build.Recreation
	Part             = build.Part
	RandomPart       = source.Random
	MissingRights    = source.MissingRights
)

// The values of Relation, Method and Rule.
const (
	Remove, Replace, Extreme        = spec.Remove, spec.Replace, spec.Extreme
	Auto, Copy, View                = spec.Auto, spec.Copy, spec.View
	MostRows, MostPartitions, Alone = spec.MostRows, spec.MostPartitions, spec.Alone
	Largest, Smallest, Random       = spec.Largest, spec.Smallest, spec.Random
)

// AllRows is a world of a Recreation with all rows of the source: D0, or its twin.
const AllRows = build.AllRows

// The errors that callers distinguish.
var (
	ErrNoSet    = shadow.ErrNoSet   // the shadow database holds no completed set
	ErrTooLarge = build.ErrTooLarge // the source has too many rows to make copies anew
)

// MakePlan determines what Create (or Refresh) would do, and everything that is missing for it, without changing
// anything: rights, extensions, types, paths to the unit, definitions that the shadow database rejects. It tries
// definitions in a transaction that is rolled back. The error is ctx's; all other faults are in the Plan.
func MakePlan(ctx context.Context, o Options, refresh bool) (Plan, error) {
	return build.MakePlan(ctx, o, refresh)
}

// CheckSource returns what prevents Create from reading the source: missing rights (a MissingRights), tables without a
// path to the unit, and paths that cannot be followed. unread is why the source could not be examined.
func CheckSource(ctx context.Context, o Options) (fault, unread error) { return source.Check(ctx, &o) }

// Create creates a set; there must be none. It reports the faults of MakePlan before anything is written. On any fault,
// and when ctx is done, it removes what it created. A killed process leaves records with which the next command removes
// the rest.
func Create(ctx context.Context, o Options) (Set, error) { return build.Create(ctx, o, false) }

// Refresh creates a set beside the current one and replaces it in one transaction, under a new epoch. A fault before
// that leaves the current set unchanged.
func Refresh(ctx context.Context, o Options) (Set, error) { return build.Create(ctx, o, true) }

// Verify checks for every pair of the current set that it differs by exactly one unit, and that no other rows differ.
// It computes checksums of the present rows, per table, of the unit's rows and of all others; it takes only the unit's
// identity from the records. It also compares the schemas, as far as plans, results and rights depend on them: D0 with
// what create would make of the source's present definitions, if the source can be reached, and every neighbour with
// D0. The server does the work; it reads every table of every schema once. Rows are not compared with the source's,
// which change. The twin must have the rows and the definitions of D0.
func Verify(ctx context.Context, o Options) (Report, error) { return verify.Run(ctx, o) }

// Current returns the set that audits may use; the session is that of the copies' owner. The error is ErrNoSet if there
// is none.
func Current(ctx context.Context, dsn, control string) (Set, error) {
	o := &Options{Target: dsn, Control: control}
	conn, err := session.Open(ctx, dsn, "the shadow database")
	if err != nil {
		return Set{}, err
	}
	defer conn.Close(context.WithoutCancel(ctx)) //nolint:errcheck // only read
	return (&shadow.DB{Conn: conn, Options: o}).Current(ctx)
}

// List returns the current set and its members. Key and Why hold personal data: show only Unit unless the user asks for
// more.
func List(ctx context.Context, o Options) (Set, []Member, error) {
	conn, err := session.Open(ctx, o.Target, "neighbours.target")
	if err != nil {
		return Set{}, nil, err
	}
	defer conn.Close(context.WithoutCancel(ctx)) //nolint:errcheck // only read
	s := &shadow.DB{Conn: conn, Options: &o}
	set, err := s.Current(ctx)
	if err != nil {
		return set, nil, err
	}
	if err := s.CheckVersion(ctx); err != nil {
		return set, nil, err
	}
	members, err := s.Members(ctx, set)
	return set, members, s.Explain(err)
}

// FindRandom returns what volatile functions compute in the copies, according to the source's definitions.
func FindRandom(ctx context.Context, o Options) ([]RandomPart, error) {
	conn, err := session.Open(ctx, o.Source, "neighbours.source")
	if err != nil {
		return nil, err
	}
	src := &source.Snapshot{Conn: conn, Options: &o}
	defer src.Close(ctx)
	if err := src.Open(ctx); err != nil {
		return nil, src.Explain(err)
	}
	found, err := source.FindRandom(ctx, src.Tx, &o)
	return found, src.Explain(err)
}

// Drop removes the set, the types and schemas created for it, leftovers of killed commands, and the records; also the
// leftovers of Recreations.
func Drop(ctx context.Context, o Options) error {
	return errors.Join(build.Drop(ctx, o.Recreated(0)), build.Drop(ctx, o)) // the copies may use types of the set
}

// OpenRecreation copies the source as it is now, as Create does, and chooses the units. worlds has for each copy that is
// then made the index in Options.D1 of the neighbour that it is, or AllRows. The error is ErrTooLarge if the tables have
// more than most bytes; 0 = any number. After an error everything is removed. What a killed process leaves is removed by
// the next OpenRecreation, and by Drop.
func OpenRecreation(ctx context.Context, o Options, worlds []int, most int64) (*Recreation, error) {
	if err := o.Check(); err != nil { // of the names that users know
		return nil, err
	}
	return build.OpenRecreation(ctx, o.Recreated(most), worlds)
}
