package stages

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/dpwatch/dpwatch/config"
	"github.com/dpwatch/dpwatch/internal/audit/defaults"
	"github.com/dpwatch/dpwatch/internal/audit/recognize"
	"github.com/dpwatch/dpwatch/internal/curve"
	"github.com/dpwatch/dpwatch/internal/pg/catalog"
	"github.com/dpwatch/dpwatch/internal/pg/catalog/read"
	"github.com/dpwatch/dpwatch/internal/pg/ident"
	"github.com/dpwatch/dpwatch/replay"
	"github.com/dpwatch/dpwatch/replay/neighbours"
	"github.com/dpwatch/dpwatch/rewrite"
)

// NoiseFunctions returns the names of the declared DP functions, without schemas.
func NoiseFunctions(c config.Config) []string {
	var names []string
	for _, s := range RewriteOptions(c).Claims.Signatures {
		names = append(names, ident.Bare(s.Function))
	}
	return names
}

// ReplayOptions translates the configuration to the options of package replay. pace may be nil.
func ReplayOptions(c config.Config, pace replay.Pace) replay.Options {
	return replay.Options{
		DSN: c.Shadow.DSN.Reveal(), SearchPath: c.Shadow.SearchPath, Public: c.Privacy.Public, Originals: schemas(c.Privacy.Protected),
		StatementTimeout: time.Duration(c.Shadow.StatementTimeout), ConnectTimeout: ConnectTimeout,
		MaxRows: c.Shadow.MaxRows, MaxBytes: int64(c.Shadow.MaxResult), HoistBytes: int64(c.Audit.HoistSpace), Connections: auditConnections, Pace: pace,
		Engines: c.Shadow.Engines(append(c.Shadow.Copies(), c.Shadow.TwinSchema(), c.Shadow.GuardSchema())), Copies: c.Shadow.Copies(), Twin: c.Shadow.TwinSchema(), Guard: c.Shadow.GuardSchema(), Protocol: replay.Protocol(c.Shadow.Engine.Protocol),
		Noise: NoiseFunctions(c),
	}
}

// schemas returns the schemas of tables, each once.
func schemas(names []string) (all []string) {
	for _, t := range tables(names) {
		if !slices.Contains(all, t.Schema) {
			all = append(all, t.Schema)
		}
	}
	return all
}

// ConnectTimeout bounds connecting to the shadow database and to other databases.
const ConnectTimeout = 5 * time.Second

// auditConnections is the number of connections of one audit.
const auditConnections = 2

// Evaluate returns what answers questions about the claims of statements: the shadow database evaluates expressions, and
// the engine of D0 states its claims.
func Evaluate(c config.Config, player *replay.Player) recognize.Evaluate {
	return func(ctx context.Context, q rewrite.Question) (v rewrite.Value, err error) {
		if !q.Asked {
			v.Number, v.Fault, err = player.Evaluate(ctx, q.SQL)
			return v, err
		}
		a, err := player.Ask(ctx, c.Claims.Ask, q.SQL, q.Settings, q.SearchPath)
		if err != nil || a.Fault != "" {
			return rewrite.Value{Fault: a.Fault}, err
		}
		return rewrite.Stated(a.Names, a.Row), nil
	}
}

// RewriteOptions translates the configuration to the options of package rewrite, without catalogs.
func RewriteOptions(c config.Config) rewrite.Options {
	opt := rewrite.Options{
		Database: c.Privacy.Database, Protected: tables(c.Privacy.Protected), Public: tables(c.Privacy.Public), SearchPath: c.Privacy.SearchPath,
		AllowFunctions: c.Claims.SafeFunctions, MaxOfSequence: c.Audit.SequenceComposition == rewrite.SourceMax, MaxBytes: int(c.Proxy.MaxStatement),
		Neighbours: c.Shadow.Copies(), OwnEngines: c.Shadow.OwnEngines(),
		Claims: rewrite.ClaimRules{
			Answer: c.Claims.Answer != "", Ask: c.Claims.Ask != "", Combine: c.Claims.Combine, LabelProviders: c.Claims.SecurityLabels,
			EpsilonSetting: settingOrNone(c.Claims.Settings.Epsilon), DeltaSetting: settingOrNone(c.Claims.Settings.Delta),
		},
	}
	if !c.Shadow.Beside() { // an engine beside the database resolves names itself
		opt.ShadowPath = c.Shadow.SearchPath
	}
	for _, f := range c.Claims.Functions {
		opt.Claims.Signatures = append(opt.Claims.Signatures, rewrite.Signature{
			Function: f.Name, Epsilon: f.Epsilon, Delta: f.Delta, EpsilonName: f.EpsilonName, DeltaName: f.DeltaName, Unit: f.Unit,
		})
	}
	for _, r := range c.Claims.Rules {
		opt.Claims.Rules = append(opt.Claims.Rules, rewrite.Rule{
			Name: r.Name, User: r.User, Database: r.Database, ApplicationName: r.ApplicationName,
			Table: ident.ParseTable(r.Table), Pattern: r.Pattern, Epsilon: r.Epsilon, Delta: r.Delta, Curve: parsed(r.Curve),
		})
	}
	if d := c.Claims.Default; d != nil {
		opt.Claims.Default = &rewrite.Claim{Epsilon: d.Epsilon, Delta: d.Delta, Curve: parsed(d.Curve)}
	}
	for _, t := range c.Claims.Trust {
		opt.Claims.TrustComment = opt.Claims.TrustComment || t == "comment"
		opt.Claims.TrustSetting = opt.Claims.TrustSetting || t == "setting"
	}
	return opt
}

// parsed returns the curve of a configuration that was validated; "" = none.
func parsed(text string) curve.Curve {
	c, _ := curve.Parse(text)
	return c
}

// UnclaimedRules translates the policies for unclaimed reads. The patterns are valid.
func UnclaimedRules(u config.UnclaimedReads) []recognize.UnclaimedRule {
	var rules []recognize.UnclaimedRule
	for _, r := range append(slices.Clone(u.Rules), config.UnclaimedRule{Policy: u.Policy}) {
		rule := recognize.UnclaimedRule{User: r.User, Database: r.Database, ApplicationName: r.ApplicationName, Policy: recognize.Policy(r.Policy)}
		if r.Table != "" {
			rule.Table = ident.ParseTable(r.Table)
		}
		if r.Pattern != "" {
			rule.Pattern = regexp.MustCompile(r.Pattern)
		}
		rules = append(rules, rule)
	}
	return rules
}

// settingOrNone returns rewrite's notation for "no setting" if name is empty.
func settingOrNone(name string) string {
	if name == "" {
		return "-"
	}
	return name
}

func tables(names []string) []rewrite.Table {
	out := make([]rewrite.Table, len(names))
	for i, name := range names {
		out[i] = ident.ParseTable(name)
	}
	return out
}

// neighbourWorkers is the number of neighbours that are built concurrently.
const neighbourWorkers = 2

// NeighbourOptions translates the configuration to the options of package neighbours.
func NeighbourOptions(c config.Config) (neighbours.Options, error) {
	n := c.Neighbours
	table := ident.ParseTable
	column := func(name string) neighbours.Column {
		i := strings.LastIndexByte(name, '.')
		return neighbours.Column{Table: table(name[:i]), Name: name[i+1:]}
	}
	o := neighbours.Options{
		Source: n.Source.Reveal(), Target: n.Target.Reveal(), Control: c.ControlSchema(), D0: c.Shadow.D0, D1: c.Shadow.D1, Twin: c.Shadow.TwinSchema(), Guard: c.Shadow.GuardSchema(),
		Unit:       neighbours.Unit{Table: table(c.Privacy.Unit.Table), Key: c.Privacy.Unit.Key},
		SearchPath: c.Privacy.SearchPath, FunctionPath: c.Shadow.SearchPath, Noise: NoiseFunctions(c),
		Relation: neighbours.Relation(n.Relation), Method: neighbours.Method(n.Method), CopyLimit: int64(n.CopyLimit),
		Grant: n.Grant, Workers: neighbourWorkers, RenameBody: rewrite.RenameBody,
	}
	if c.Shadow.Guard == "" {
		o.GuardLimit = SmallCopies
	}
	for _, name := range c.Privacy.Protected {
		o.Protected = append(o.Protected, table(name))
	}
	for _, name := range c.Privacy.Public {
		o.Public = append(o.Public, table(name))
	}
	for _, p := range c.Privacy.Paths {
		o.Paths = append(o.Paths, neighbours.Path{
			Table: table(p.Table), Columns: p.Columns, To: table(p.To), On: p.On, Where: p.Where, Act: p.Act, Ignore: p.Ignore,
		})
	}
	for _, x := range n.Choose {
		choice := neighbours.Choice{Rule: neighbours.Rule(x.Rule), K: x.K, Seed: int64(x.Seed)}
		for _, name := range x.Columns {
			choice.Columns = append(choice.Columns, column(name))
		}
		o.Choose = append(o.Choose, choice)
	}
	for _, m := range n.Measures {
		text := func(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }
		o.Measures = append(o.Measures, neighbours.Measure{Column: column(m.Column), Low: text(m.Low), High: text(m.High)})
	}
	replay, err := pgx.ParseConfig(c.Shadow.DSN.Reveal())
	if err != nil {
		return o, fmt.Errorf("shadow.dsn is not a connection string")
	}
	if o.Target == "" {
		o.Target = c.Shadow.DSN.Reveal()
	}
	target, err := pgx.ParseConfig(o.Target)
	if err != nil {
		return o, fmt.Errorf("neighbours.target is not a connection string")
	}
	if target.Database != replay.Database {
		return o, fmt.Errorf("neighbours.target is database %s and shadow.dsn is database %s: both must be the shadow database", target.Database, replay.Database)
	}
	if len(o.Grant) == 0 && target.User != replay.User {
		o.Grant = []string{replay.User}
	}
	return o, nil
}

// SmallCopies is the greatest size of the source's tables, in bytes, at which copies are made without being asked for:
// that takes seconds.
const SmallCopies = 64 << 20

// WithTwin adds those of the twins of D0 to the schemas of the copies that the shadow database has: copies that were
// made before there were twins have none.
func WithTwin(copies []string, shadow *catalog.Catalog, twins ...string) []string {
	all := slices.Clone(copies)
	for _, twin := range twins {
		if shadow != nil && twin != "" && slices.ContainsFunc(shadow.Relations, func(r catalog.Relation) bool { return r.Schema == twin }) {
			all = append(all, twin)
		}
	}
	return all
}

// CatalogTimeout bounds reading one catalog, which takes long if it is large or the server is busy.
const CatalogTimeout = time.Minute

// Defaults returns what follows the initial settings of sessions; nil without privacy.catalog.
func Defaults(c config.Config) *defaults.Defaults {
	if c.Privacy.Catalog == "" {
		return nil
	}
	return defaults.New(read.Defaults(c.Privacy.Catalog.Reveal(), CatalogTimeout))
}

// Rewriters returns a function that returns a Rewriter for the configuration and the current catalogs: the same one as
// before if they are the same. If a catalog cannot be read, the error names it, and the Rewriter uses the last one that
// was read, or none. The function is not safe for concurrent use.
func Rewriters(c config.Config) func(context.Context) (*rewrite.Rewriter, error) {
	opt := RewriteOptions(c)
	var last *rewrite.Rewriter
	return func(ctx context.Context) (*rewrite.Rewriter, error) {
		var errs []error
		changed := last == nil
		refresh := func(what string, dsn config.Secret, into **catalog.Catalog) {
			if dsn == "" {
				return
			}
			got, err := read.Catalog(ctx, dsn.Reveal(), CatalogTimeout)
			if err != nil {
				errs = append(errs, fmt.Errorf("%s: %w", what, err))
				return
			}
			if !reflect.DeepEqual(*into, got) {
				*into, changed = got, true
			}
		}
		refresh("shadow.dsn", c.Shadow.DSN, &opt.Shadow)
		refresh("privacy.catalog", c.Privacy.Catalog, &opt.Source)
		if !changed {
			return last, errors.Join(errs...)
		}
		now := opt
		now.Neighbours = WithTwin(opt.Neighbours, opt.Shadow, c.Shadow.TwinSchema(), c.Shadow.GuardSchema())
		r, err := rewrite.New(now)
		last = r
		return r, errors.Join(append(errs, err)...)
	}
}
