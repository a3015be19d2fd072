package check

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"time"

	"go.uber.org/zap"

	"github.com/dpwatch/dpwatch/config"
	"github.com/dpwatch/dpwatch/internal/app/admin"
	"github.com/dpwatch/dpwatch/internal/app/relay"
	"github.com/dpwatch/dpwatch/internal/app/setup"
	"github.com/dpwatch/dpwatch/internal/app/stages"
	"github.com/dpwatch/dpwatch/internal/app/status"
	"github.com/dpwatch/dpwatch/internal/capture"
	"github.com/dpwatch/dpwatch/internal/preflight"
	"github.com/dpwatch/dpwatch/internal/sqlstate"
	"github.com/dpwatch/dpwatch/internal/withheld"
	"github.com/dpwatch/dpwatch/proxy"
	"github.com/dpwatch/dpwatch/replay"
	"github.com/dpwatch/dpwatch/replay/neighbours"
)

// Checks returns all checks of a configuration. Those of several engines have their names as prefixes.
func Checks(c config.Config) []preflight.Task {
	var tasks []preflight.Task
	all := c.AllEngines()
	for _, one := range all {
		for i, r := range one.Proxy.AllRoutes() {
			tasks = append(tasks, checkListeners(c, r.Listen, "proxy.listen"), checkUpstream(one, i))
		}
	}
	for _, l := range c.Admin {
		tasks = append(tasks, checkListeners(c, l.Listen, "admin.listen"))
	}
	for _, one := range all {
		for _, task := range engineChecks(one) {
			if len(all) > 1 {
				task = named(one.EngineName(), task)
			}
			tasks = append(tasks, task)
		}
	}
	return tasks
}

// engineChecks returns the checks of what one engine has for itself.
func engineChecks(c config.Config) []preflight.Task {
	o := preflightOptions(c)
	tasks := []preflight.Task{preflight.Shadow(o), checkRights(c), preflight.Catalog(o)}
	for i := range c.Shadow.Engines(c.Shadow.Copies()) {
		tasks = append(tasks, checkEngine(c, i))
	}
	return append(tasks, checkVersion(c), checkClaims(c), checkNeighbours(c), checkLedger(c), checkSpool(c), checkPace(c), checkServer(c))
}

// named returns a task whose checks name an engine.
func named(engine string, task preflight.Task) preflight.Task {
	return func(ctx context.Context) []preflight.Check {
		checks := task(ctx)
		for i := range checks {
			checks[i].Name = engine + ": " + checks[i].Name
		}
		return checks
	}
}

// checkPace reports the default pace of trials, if the configuration does not set one.
func checkPace(c config.Config) preflight.Task {
	return func(ctx context.Context) []preflight.Check {
		if !stages.AutomaticPace(c) {
			return nil
		}
		check := preflight.Check{Name: "audit.share", Object: "the default", Status: preflight.OK}
		_, why, err := stages.DefaultPace(ctx, c)
		if check.Message = why; err != nil {
			check.Status, check.Message, check.Fix = preflight.Unchecked, why+": "+sqlstate.Withhold(err).Error(), "set audit.share: 0.1 for a server that clients use, 1 for another"
		}
		return []preflight.Check{check}
	}
}

// checkServer warns of a shadow database on the server that clients use.
func checkServer(c config.Config) preflight.Task {
	return func(ctx context.Context) []preflight.Check {
		key, err := stages.ServerOfClients(ctx, c)
		if key == "" || err != nil {
			return nil
		}
		return []preflight.Check{{
			Name: "shadow.dsn", Object: "its server", Status: preflight.Warning,
			Message: "is the server of " + key + ", which clients use: a query that crashes the server in a trial ends their sessions, too, and a function that reads besides the copies finds production's data there",
			Fix:     "move the shadow database to a server of its own",
		}}
	}
}

func preflightOptions(c config.Config) preflight.Options {
	o := preflight.Options{
		Shadow: c.Shadow.DSN.Reveal(), ConnectTimeout: stages.ConnectTimeout, D0: c.Shadow.D0, D1: c.Shadow.D1, Twin: c.Shadow.TwinSchema(),
		Protected: c.Privacy.Protected, Public: c.Privacy.Public, SearchPath: c.Shadow.SearchPath, ClientPath: c.Privacy.SearchPath,
		Hoist: c.Audit.Hoist, Catalog: c.Privacy.Catalog.Reveal(), Safe: c.Claims.SafeFunctions, Beside: c.Shadow.Beside(),
	}
	o.Source = c.Neighbours.Source.Reveal()
	if c.Privacy.Unit != nil {
		o.Unit = c.Privacy.Unit.Table
	}
	if c.Neighbours.Configured() {
		o.Set = func(ctx context.Context) preflight.Set { return recordOf(ctx, c) }
	}
	for _, f := range c.Claims.Functions {
		o.Functions = append(o.Functions, preflight.Function{Name: f.Name, Epsilon: f.Epsilon, Delta: f.Delta})
	}
	return o
}

// checkListeners checks that the addresses can be listened on.
func checkListeners(c config.Config, addresses []config.Address, key string) preflight.Task {
	return func(ctx context.Context) (checks []preflight.Check) {
		for _, a := range addresses {
			check := preflight.Check{Name: key, Object: a.String(), Status: preflight.OK, Message: "can be listened on"}
			l, err := admin.Listen(a, admin.SocketMode)
			switch {
			case err == nil:
				_ = l.Close()
			case errors.Is(err, syscall.EADDRINUSE) && answers(ctx, c):
				check.Status, check.Message = preflight.Warning, "is in use, probably by a running dpwatch: /livez answers at admin.listen"
			case errors.Is(err, syscall.EADDRINUSE):
				check.Status, check.Message, check.Fix = preflight.Fault, err.Error(), "choose another address, or stop the program that uses it"
			default:
				check.Status, check.Message, check.Fix = preflight.Fault, err.Error(), "choose an address of this machine that dpwatch may listen on"
			}
			checks = append(checks, check)
		}
		return checks
	}
}

// answers reports whether a dpwatch serves the configured admin port.
func answers(ctx context.Context, c config.Config) bool {
	target, err := status.Nearest("the configuration", c.Admin)
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	return err == nil && target.Ask(ctx, "/livez") == nil
}

// checkUpstream checks that an engine answers, and that clients can authenticate if both legs use TLS.
func checkUpstream(c config.Config, index int) preflight.Task {
	return func(ctx context.Context) []preflight.Check {
		cfg := c.Proxy.AllRoutes()[index]
		check := preflight.Check{Name: "proxy.upstream", Object: cfg.Upstream.String(), Status: preflight.OK, Message: "answers"}
		if cfg.UpstreamTLS.Mode != "disable" {
			check.Message += ", upstream_tls " + cfg.UpstreamTLS.Mode
		}
		failed := func(err error, fix string) []preflight.Check {
			check.Status, check.Message, check.Fix = preflight.Fault, err.Error(), fix
			return []preflight.Check{check}
		}
		one, err := relay.NewRoute(&c, index, capture.NewQueue(1, 1<<10), nil, nil, nil, zap.NewNop())
		if err != nil {
			return failed(err, "correct the files and modes of tls and upstream_tls")
		}
		if err := one.Server.Probe(ctx); err != nil {
			return failed(err, "start the engine, or correct proxy.upstream and proxy.upstream_tls")
		}
		var unchecked *proxy.UpstreamError
		if err := one.Server.CheckUpstream(ctx); err != nil && !errors.As(err, &unchecked) {
			return failed(err, "set tls.same_certificate: assume if no client uses channel binding")
		}
		if note := one.HBANote(); note != "" {
			check.Message += "; " + note
		}
		return []preflight.Check{check}
	}
}

// checkRights reports the privileges of the replay role beyond reading the copies.
func checkRights(c config.Config) preflight.Task {
	return func(ctx context.Context) []preflight.Check {
		ctx, cancel := context.WithTimeout(ctx, setup.CheckTimeout)
		defer cancel()
		check := preflight.Check{Name: "replay role", Object: "rights", Status: preflight.OK, Message: "none beyond reading the copies"}
		o := stages.ReplayOptions(c, nil)
		player, err := replay.New(o)
		var excess []replay.Excess
		if err == nil {
			excess, err = player.Excess(ctx, o.Copies)
		}
		if err != nil {
			check.Status, check.Message = preflight.Unchecked, "the shadow database cannot be queried"
		}
		if len(excess) == 0 {
			return []preflight.Check{check}
		}
		var checks []preflight.Check
		for _, e := range excess {
			status, message := preflight.Warning, e.What
			if e.Original {
				status, message = preflight.Fault, e.What+": audits do not begin, since an original is the same in all worlds"
			}
			checks = append(checks, preflight.Check{Name: "replay role", Object: "rights", Status: status, Message: message, Fix: e.Fix})
		}
		return checks
	}
}

// checkEngine checks that an engine beside the database accepts sessions.
func checkEngine(c config.Config, i int) preflight.Task {
	return func(ctx context.Context) []preflight.Check {
		ctx, cancel := context.WithTimeout(ctx, setup.CheckTimeout)
		defer cancel()
		object := "engine beside the database"
		if c.Shadow.OwnEngines() {
			object = "engine of " + c.Shadow.Copies()[i]
		}
		check := preflight.Check{Name: "shadow.engine.dsn", Object: object, Status: preflight.OK, Message: "accepts sessions"}
		player, err := replay.New(stages.ReplayOptions(c, nil))
		warning := ""
		if err == nil {
			warning, err = player.CheckEngine(ctx, i)
		}
		switch {
		case err != nil:
			check.Status, check.Message, check.Fix = preflight.Fault, withheld.Reveal(err), "start the engine for replays, or correct its connection string"
		case warning != "":
			check.Status, check.Message = preflight.Warning, warning
		}
		return []preflight.Check{check}
	}
}

// checkNeighbours checks that the copies are those that the configuration names.
func checkNeighbours(c config.Config) preflight.Task {
	return func(ctx context.Context) []preflight.Check {
		worlds := fmt.Sprintf("%s and %s", c.Shadow.D0, strings.Join(c.Shadow.D1, ", "))
		differ := preflight.Check{Name: "neighbours", Object: worlds, Status: preflight.Unchecked, Message: "whether each pair differs by exactly one unit"}
		if !c.Neighbours.Configured() {
			differ.Message += ": the copies are hand-made"
			return []preflight.Check{differ}
		}
		set, verified := checkSet(ctx, c)
		if differ.Fix = "run `dpwatch neighbours verify`"; verified != nil {
			differ.Status, differ.Message, differ.Fix = preflight.OK, "verified "+verified.UTC().Format(time.RFC3339)+": no fault was found", ""
		}
		checks := append(preflight.Connect("neighbours.source", c.Neighbours.Source.Reveal(), stages.ConnectTimeout)(ctx), set, differ)
		return slices.Concat(checks, CheckPaths(ctx, c, true), checkUnits(ctx, c), checkRandom(ctx, c))
	}
}

// CheckPaths checks that the source can be read, and that privacy.paths can be followed there: columns that do not exist,
// types that cannot be compared, missing rights. connected: an error of the connection has been reported.
func CheckPaths(ctx context.Context, c config.Config, connected bool) (checks []preflight.Check) {
	o, err := stages.NeighbourOptions(c)
	if err != nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, setup.CheckTimeout)
	defer cancel()
	fault, unread := neighbours.CheckSource(ctx, o)
	check := preflight.Check{Name: "privacy.paths", Object: "the tables of neighbours.source", Status: preflight.OK, Message: "each has a path to the unit"}
	var rights *neighbours.MissingRights
	switch {
	case unread != nil && connected:
		return nil
	case unread != nil:
		check.Status, check.Message = preflight.Unchecked, "whether they can be followed: "+unread.Error()
	case errors.As(fault, &rights):
		if connected { // preflight.Rows reports the tables
			rights.Grants = slices.DeleteFunc(rights.Grants, func(g string) bool { return !strings.HasPrefix(g, "GRANT SELECT ON SEQUENCE ") })
		}
		if len(rights.Grants) == 0 {
			return nil
		}
		check.Status, check.Database, check.Fix = preflight.Fault, rights.Database, strings.Join(rights.Grants, "\n")
		check.Message = "role " + rights.Role + " may not read all of them"
	case fault != nil:
		for _, text := range strings.Split(fault.Error(), "\n") {
			check.Status, check.Message = preflight.Fault, text
			checks = append(checks, check)
		}
		return checks
	}
	return []preflight.Check{check}
}

// checkUnits reports the neighbours that differ from D0 by more or less than a unit, as create counted it. No message
// has a number of rows. An error is that of checkSet, which has reported it.
func checkUnits(ctx context.Context, c config.Config) (checks []preflight.Check) {
	o, err := stages.NeighbourOptions(c)
	if err != nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, setup.CheckTimeout)
	defer cancel()
	_, members, err := neighbours.List(ctx, o)
	if err != nil {
		return nil
	}
	for _, m := range members {
		check := preflight.Check{
			Name: "neighbours", Object: m.Schema, Status: preflight.Warning,
			Fix: "dpwatch neighbours verify shows the lines to write under privacy.paths; then run `dpwatch neighbours create --replace`",
		}
		if m.Open() {
			check.Status = preflight.Fault
		}
		if len(m.Names) > 0 {
			check.Message = "names the unit that it lacks in " + strings.Join(m.Names, ", ")
			checks = append(checks, check)
		}
		if m.Others > 0 {
			check.Message = "lacks rows that name only other persons: honest answers may differ by more than a unit's"
			checks = append(checks, check)
		}
	}
	return checks
}

// checkRandom names what is random in a copy. An error is that of checkSet or of the connection, which have reported it.
func checkRandom(ctx context.Context, c config.Config) (checks []preflight.Check) {
	o, err := stages.NeighbourOptions(c)
	if err != nil {
		return nil
	}
	found, _ := neighbours.FindRandom(ctx, o)
	for _, x := range found {
		check := preflight.Check{Name: "neighbours", Object: "noise of a copy", Status: preflight.OK, Message: x.Text}
		if x.Anew {
			check.Status = preflight.Warning
		}
		checks = append(checks, check)
	}
	return checks
}

// recordOf returns what the record of the current set says; nothing if it cannot be read, which checkSet reports.
func recordOf(ctx context.Context, c config.Config) preflight.Set {
	o, err := stages.NeighbourOptions(c)
	if err != nil {
		return preflight.Set{}
	}
	set, members, err := neighbours.List(ctx, o)
	if err != nil {
		return preflight.Set{}
	}
	record := preflight.Set{Relation: string(set.Relation), Rows: map[string]int64{}}
	for _, m := range members {
		record.Rows[m.Schema] = m.Rows
	}
	return record
}

// checkSet checks the record of the set, and returns when it was verified; nil = not, or with faults.
func checkSet(ctx context.Context, c config.Config) (check preflight.Check, verified *time.Time) {
	ctx, cancel := context.WithTimeout(ctx, setup.CheckTimeout)
	defer cancel()
	check = preflight.Check{Name: "neighbours", Object: "the set of copies", Status: preflight.Fault}
	o, err := stages.NeighbourOptions(c)
	var set neighbours.Set
	if err == nil {
		set, err = neighbours.Current(ctx, o.Target, o.Control) // only the owner of the record can read it
	}
	switch {
	case err != nil:
		check.Message, check.Fix = err.Error(), "correct neighbours.target, or run `dpwatch neighbours create`"
	case set.D0 != c.Shadow.D0 || !slices.Equal(set.D1, c.Shadow.D1) || string(set.Relation) != c.Neighbours.Relation:
		check.Message = fmt.Sprintf("the copies are %s and %s, relation %s; the configuration has %s and %s, relation %s",
			set.D0, strings.Join(set.D1, ", "), set.Relation, c.Shadow.D0, strings.Join(c.Shadow.D1, ", "), c.Neighbours.Relation)
		check.Fix = "run `dpwatch neighbours create --replace`, or correct shadow.d0, shadow.d1 and neighbours.relation"
	case set.Twin != c.Shadow.TwinSchema():
		check.Status = preflight.Warning
		check.Message = fmt.Sprintf("the copies have the twin %s, and the configuration has %s", cmp.Or(set.Twin, "none"), cmp.Or(c.Shadow.TwinSchema(), "none"))
		check.Fix = "run `dpwatch neighbours create --replace`, or correct shadow.twin"
	default:
		check.Status = preflight.OK
		check.Message = fmt.Sprintf("epoch %d, made %s, relation %s, method %s", set.Epoch, set.Made.UTC().Format(time.RFC3339), set.Relation, set.Method)
		verified = set.Verified
	}
	return check, verified
}
