package check

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	mathrand "math/rand/v2"
	"net"
	"net/url"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/dpwatch/dpwatch/analysis"
	"github.com/dpwatch/dpwatch/config"
	"github.com/dpwatch/dpwatch/internal/app/setup"
	"github.com/dpwatch/dpwatch/internal/app/stages"
	"github.com/dpwatch/dpwatch/internal/audit/recognize"
	"github.com/dpwatch/dpwatch/internal/capture"
	"github.com/dpwatch/dpwatch/internal/ledger"
	"github.com/dpwatch/dpwatch/internal/pg/connect"
	"github.com/dpwatch/dpwatch/internal/preflight"
	"github.com/dpwatch/dpwatch/internal/sqlstate"
	"github.com/dpwatch/dpwatch/replay"
	"github.com/dpwatch/dpwatch/rewrite"
)

// Doctor returns the checks of Checks, and those of what a deployment does: clocks, receivers of alerts, and for each
// engine the numbers of rows of its copies, how its captured queries are judged, how fast they are replayed, and what
// an audit of them takes.
func Doctor(c config.Config) []preflight.Task {
	tasks := append(Checks(c), checkClocks(c))
	for _, r := range c.Alerts.Receivers {
		tasks = append(tasks, checkReceiver(r))
	}
	all := c.AllEngines()
	for _, one := range all {
		for _, task := range []preflight.Task{preflight.Rows(preflightOptions(one)), checkViews(one), checkAsk(one), checkCaptured(one)} {
			if len(all) > 1 {
				task = named(one.EngineName(), task)
			}
			tasks = append(tasks, task)
		}
	}
	return tasks
}

// Differences of clocks that are reported.
const (
	clockWarning = 2 * time.Second
	clockFault   = time.Minute
)

// checkClocks compares the clocks of the databases with that of this process.
func checkClocks(c config.Config) preflight.Task {
	return func(ctx context.Context) (checks []preflight.Check) {
		databases := map[string]string{"shadow.dsn": c.Shadow.DSN.Reveal(), "privacy.catalog": c.Privacy.Catalog.Reveal()}
		if c.LedgerDSN() != "" {
			databases["ledger.dsn"] = c.LedgerDSN()
		}
		for _, key := range slices.Sorted(maps.Keys(databases)) {
			if databases[key] == "" {
				continue
			}
			check := preflight.Check{Name: "clock", Object: key, Status: preflight.OK}
			off, err := clockOf(ctx, databases[key], stages.ConnectTimeout)
			check.Message = fmt.Sprintf("differs by %s from this machine's", off.Round(time.Millisecond))
			switch {
			case err != nil:
				check.Status, check.Message = preflight.Unchecked, sqlstate.Withhold(err).Error()
			case off.Abs() >= clockFault:
				check.Status, check.Fix = preflight.Fault, "synchronize the clocks (NTP): times in the ledger, the privacy budgets' periods and alerts would be wrong"
			case off.Abs() >= clockWarning:
				check.Status, check.Fix = preflight.Warning, "synchronize the clocks (NTP)"
			}
			checks = append(checks, check)
		}
		return checks
	}
}

// clockOf returns the difference of a server's clock to this machine's, to half of a round trip.
func clockOf(ctx context.Context, dsn string, timeout time.Duration) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, setup.CheckTimeout)
	defer cancel()
	conn, err := connect.Open(ctx, dsn, connect.Options{Application: preflight.ApplicationName, Timeout: timeout, ReadOnly: true})
	if err != nil {
		return 0, err
	}
	defer conn.Close(ctx) //nolint:errcheck // it was read
	var theirs time.Time
	began := time.Now()
	if err := conn.QueryRow(ctx, "SELECT clock_timestamp()").Scan(&theirs); err != nil {
		return 0, err
	}
	took := time.Since(began)
	return theirs.Sub(began.Add(took / 2)), nil
}

// receiverTimeout bounds a connection to a receiver.
const receiverTimeout = 5 * time.Second

// checkReceiver checks that a receiver can be reached. It sends nothing: dpwatch alerts test does.
func checkReceiver(r config.Receiver) preflight.Task {
	return func(ctx context.Context) []preflight.Check {
		check := preflight.Check{Name: "alerts.receivers", Object: r.Name, Status: preflight.OK, Message: "needs no connection"}
		fault := func(message, fix string) []preflight.Check {
			check.Status, check.Message, check.Fix = preflight.Fault, message, fix
			return []preflight.Check{check}
		}
		if len(r.Command) > 0 {
			if _, err := exec.LookPath(r.Command[0]); err != nil {
				return fault("its program cannot be run", "install it, or correct the command")
			}
			check.Message = "its program is there"
			return []preflight.Check{check}
		}
		if r.URL == "" {
			return []preflight.Check{check}
		}
		u, err := url.Parse(r.URL.Reveal())
		if err != nil { // the error has the address, which may hold a secret
			return fault("its url is not valid", "write http://host:port/path or https://host/path")
		}
		ctx, cancel := context.WithTimeout(ctx, receiverTimeout)
		defer cancel()
		address := net.JoinHostPort(u.Hostname(), cmp.Or(u.Port(), map[string]string{"http": "80", "https": "443"}[u.Scheme]))
		conn, err := new(net.Dialer).DialContext(ctx, "tcp", address)
		if err != nil {
			return fault("its host cannot be reached", "check the address, the network policy and the proxy; then dpwatch alerts test "+r.Name)
		}
		_ = conn.Close()
		check.Message = "its host can be reached; dpwatch alerts test " + r.Name + " sends an alert"
		return []preflight.Check{check}
	}
}

// Bounds of what checkCaptured reads and replays.
const (
	capturedQueries = 200
	capturedTime    = 2 * time.Second
	maxUnlisted     = 10 // tables and functions that are named
)

// checkCaptured judges the latest captured queries in the ledger again, replays one of them, and says what an audit of
// them takes.
func checkCaptured(c config.Config) preflight.Task {
	return func(ctx context.Context) []preflight.Check {
		ctx, cancel := context.WithTimeout(ctx, setup.CheckTimeout)
		defer cancel()
		check := preflight.Check{Name: "captured queries", Object: c.EngineName(), Status: preflight.Unchecked}
		queries, err := captured(ctx, c)
		if err == nil && len(queries) == 0 {
			err = errors.New("the ledger has no statement yet: send queries through the proxy")
		}
		var rewriter *rewrite.Rewriter
		if err == nil {
			rewriter, err = stages.Rewriters(c)(ctx)
		}
		if err != nil {
			check.Message = sqlstate.Withhold(err).Error()
			return append([]preflight.Check{check}, checkEngineReads(ctx, c, countStatement(c))...)
		}
		refused, unlisted, sample := map[rewrite.Reason]int{}, map[string]bool{}, -1
		for i, q := range queries {
			_, err := analyzeAs(ctx, rewriter, q)
			var u *rewrite.UnsupportedError
			switch {
			case errors.As(err, &u):
				refused[u.Reason]++
				if object := recognize.Unlisted(err); object != "" {
					unlisted[object] = true
				}
			case err != nil:
				refused["other"]++
			case sample < 0 && len(q.Then) == 0:
				sample = i
			}
		}
		n := 0
		for _, count := range refused {
			n += count
		}
		check.Status, check.Message = preflight.OK, fmt.Sprintf("%d of %d are rewritten as the configuration is now", len(queries)-n, len(queries))
		if n > 0 {
			var reasons []string
			for _, reason := range slices.Sorted(maps.Keys(refused)) {
				reasons = append(reasons, fmt.Sprintf("%s %d", reason, refused[reason]))
			}
			check.Status, check.Message = preflight.Warning, check.Message+"; refused: "+strings.Join(reasons, ", ")
			if objects := slices.Sorted(maps.Keys(unlisted)); len(objects) > 0 {
				check.Message += "; " + strings.Join(objects[:min(len(objects), maxUnlisted)], "; ")
			}
			check.Fix = "dpwatch coverage shows the remedy for each reason"
		}
		if sample < 0 {
			return append([]preflight.Check{check}, checkEngineReads(ctx, c, countStatement(c))...)
		}
		checks := []preflight.Check{check, checkRate(ctx, c, rewriter, queries[sample], len(queries)-n)}
		if s, err := statementOf(ctx, c, rewriter, queries[sample]); err == nil { // else checkRate says why not
			checks = append(checks, checkEngineReads(ctx, c, s)...)
		}
		return checks
	}
}

// analyzeAs analyzes a statement as if its claim, where a server has to state it, were 1.
func analyzeAs(ctx context.Context, rewriter *rewrite.Rewriter, q capture.Query) (*rewrite.Plan, error) {
	return recognize.Analyze(ctx, rewriter, q, func(context.Context, rewrite.Question) (rewrite.Value, error) {
		return rewrite.Value{Number: 1}, nil
	})
}

// captured returns the latest captured queries of an engine in its ledger.
func captured(ctx context.Context, c config.Config) (queries []capture.Query, err error) {
	o, stored := setup.LedgerOptions(c)
	if !stored {
		return nil, setup.ErrNoLedger
	}
	l, err := ledger.Open(ctx, o)
	if err != nil {
		return nil, err
	}
	defer l.Close()
	all, err := l.Stored(ctx, "", capturedQueries)
	if err != nil {
		return nil, err
	}
	for _, s := range all {
		if s.Engine != c.EngineName() {
			continue
		}
		row, found, err := l.Find(ctx, s.Engine, s.Key)
		if err != nil {
			return nil, err
		}
		if q, err := capture.DecodeBinary(row.Query.Statement); found && err == nil && row.Query.Statement != nil {
			queries = append(queries, q)
		}
	}
	return queries, nil
}

// checkRate replays a query on all copies for a moment, and says how long the audits of so many queries take.
func checkRate(ctx context.Context, c config.Config, rewriter *rewrite.Rewriter, q capture.Query, queries int) preflight.Check {
	check := preflight.Check{Name: "replay rate", Object: c.EngineName(), Status: preflight.Unchecked}
	rate, err := replayRate(ctx, c, rewriter, q)
	if err != nil {
		check.Message = sqlstate.Withhold(err).Error()
		return check
	}
	share := 1.0
	if c.Audit.Share > 0 {
		share = c.Audit.Share
	}
	trials := analysis.Options{MaxTrials: c.Audit.MaxTrials}.For(analysis.Claim{Epsilon: 1}).MaxTrials
	perAudit := float64(trials*(1+len(c.Shadow.D1))) / rate
	check.Status = preflight.OK
	check.Message = fmt.Sprintf("%.0f trials a second of one captured query, without pauses; an audit without a violation takes about %s of them, those of the %d captured queries %s of time on the server",
		rate, roughly(perAudit), queries, roughly(perAudit*float64(queries)))
	if perAudit*float64(queries) > 24*3600*share {
		check.Status = preflight.Warning
		check.Message += fmt.Sprintf(", which is more than a day at audit.share %g", share)
		check.Fix = "lower audit.max_trials, add workers (docs/workers.md), or raise audit.share: docs/scaling.md"
	}
	return check
}

// roughly formats a number of seconds.
func roughly(seconds float64) string {
	d := time.Duration(seconds * float64(time.Second))
	if d < time.Minute {
		return d.Round(100 * time.Millisecond).String()
	}
	return d.Round(time.Minute).String()
}

// statementOf returns what replays of a query run, on all copies.
func statementOf(ctx context.Context, c config.Config, rewriter *rewrite.Rewriter, q capture.Query) (s replay.Statement, err error) {
	plan, err := analyzeAs(ctx, rewriter, q)
	if err != nil {
		return s, err
	}
	s = replay.Statement{Params: q.Params, Settings: plan.Settings, SearchPath: plan.SearchPath, Simple: q.Protocol == capture.Simple, Named: q.Named}
	for _, schema := range c.Shadow.Copies() {
		text := plan.Text()
		if !c.Shadow.OwnEngines() {
			if text, err = plan.For(schema); err != nil {
				return s, err
			}
		}
		s.Worlds = append(s.Worlds, text)
	}
	return s, nil
}

// replayRate returns the trials a second of a query, on all copies together.
func replayRate(ctx context.Context, c config.Config, rewriter *rewrite.Rewriter, q capture.Query) (float64, error) {
	s, err := statementOf(ctx, c, rewriter, q)
	if err != nil {
		return 0, err
	}
	player, err := replay.New(stages.ReplayOptions(c, nil))
	if err != nil {
		return 0, err
	}
	run, err := player.Start(s, mathrand.Uint64())
	if err != nil {
		return 0, err
	}
	defer run.Close()
	if _, err := run.Rounds(ctx, 1); err != nil { // opens the sessions
		return 0, err
	}
	trials, began := 0, time.Now()
	for time.Since(began) < capturedTime {
		rounds, err := run.Rounds(ctx, 5)
		if err != nil {
			return 0, err
		}
		trials += len(rounds) * len(s.Worlds)
	}
	return float64(trials) / time.Since(began).Seconds(), nil
}
