// Package demo runs everything on one machine: a temporary PostgreSQL with an honest and a broken DP engine, the proxy
// in front of it, and a client. It compares the verdicts with the planted ones.
package demo

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"text/template"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/dpwatch/dpwatch/config"
	"github.com/dpwatch/dpwatch/internal/app/relay"
	"github.com/dpwatch/dpwatch/internal/app/setup"
	"github.com/dpwatch/dpwatch/internal/app/stages"
	"github.com/dpwatch/dpwatch/internal/pages"
	"github.com/dpwatch/dpwatch/internal/pgtemp"
	"github.com/dpwatch/dpwatch/internal/showcase"
	"github.com/dpwatch/dpwatch/internal/terminal"
	"github.com/dpwatch/dpwatch/internal/zoo"
	"github.com/dpwatch/dpwatch/replay/neighbours"
)

// Options are the flags of dpwatch demo.
type Options struct {
	BinDir    string // directory of initdb and postgres; "" = search
	Listen    string
	Admin     string
	MaxTrials int
	Patience  time.Duration
	Keep      bool // leave everything running until the context ends
	All       bool // all planted queries and a table at the end, instead of those of the first minute
	Dir       string
	JSON      bool
}

// Run runs the demo. It always stops the cluster at the end.
func Run(ctx context.Context, env setup.Environment, o Options) (err error) {
	screen := terminal.NewScreen(env.Stderr)
	began := time.Now()
	o.Keep = o.Keep || !o.All && !o.JSON && terminal.Interactive(env.Stdout) // so that the commands that it names work
	screen.Say("starting a temporary PostgreSQL")
	cluster, err := pgtemp.Start(ctx, pgtemp.Options{BinDir: o.BinDir, Getenv: env.Getenv, Settings: settings})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, cluster.Stop()) }()
	screen.Say("loading 100 users and 10,000 transactions")
	secrets := showcase.Options{AppPassword: rand.Text(), ReplayPassword: rand.Text()}
	if err := setUp(ctx, cluster, secrets); err != nil {
		return err
	}
	planted := showcase.Queries()
	if !o.All {
		planted = firstMinute(planted)
	}
	if o.MaxTrials == 0 {
		o.MaxTrials = map[bool]int{true: 1500, false: 900}[o.All] // half the noise takes about 400 of them
	}
	var tokens tokenFile
	if o.Keep {
		if tokens, err = newTokenFile(); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, os.Remove(tokens.path)) }()
	}
	text, err := configuration(cluster, o, secrets, tokens.path)
	if err != nil {
		return err
	}
	c, resolved, err := config.ParseAndCheck("demo", text, env.Getenv)
	if err != nil {
		return fmt.Errorf("demo configuration: %w", err)
	}
	screen.Say("copying them to D0 and D1")
	if err := makeCopies(ctx, c); err != nil {
		return err
	}
	lines, err := openLog(screen, o, text)
	if err != nil {
		return err
	}
	defer lines.Close() //nolint:errcheck // a log
	log, err := setup.NewLogger(lines, "warn")
	if err != nil {
		return err
	}
	board := newBoard(planted)
	r, err := relay.New(env, c, resolved, log, lines, board.Update)
	if err != nil {
		return err
	}
	shown, err := pages.New(r, log)
	if err != nil {
		return err
	}
	r.SetPages(shown)
	relayCtx, stopRelay := context.WithCancel(context.WithoutCancel(ctx))
	defer stopRelay()
	var relay errgroup.Group
	relay.Go(func() error { return r.Run(relayCtx) })
	screen.Say(fmt.Sprintf("proxy on %s, metrics and status on http://%s, PostgreSQL on port %d", r.Addresses()[0], r.AdminAddresses()[0], cluster.Port()))

	application := clientDSN(r, secrets)
	if !o.All && !o.JSON {
		board.lines = newVerdicts(env, screen)
	}
	found, runErr := traffic(ctx, o, r, board, screen, application)
	if runErr == nil {
		found.Seconds = time.Since(began).Seconds()
		if board.lines != nil {
			runErr = found.sumUp(env.Stdout, o, r.AdminAddresses()[0])
		} else {
			runErr = found.Write(env, o.JSON)
		}
	}
	if o.Keep && (runErr == nil || errors.Is(runErr, errNotAsPlanted)) {
		screen.Say(fmt.Sprintf("still running: psql '%s'", application))
		screen.Say(fmt.Sprintf("pages: http://%s (without values and actions) and http://%s (log in with the token %s); press Ctrl-C to stop",
			r.AdminAddresses()[0], r.AdminAddresses()[1], tokens.token))
		<-ctx.Done()
	}
	stopRelay()
	if err := relay.Wait(); err != nil && runErr == nil {
		runErr = err
	}
	return runErr
}

// settings loads PL/pgSQL, in which the DP functions are written, once for all sessions: each trial that confirms a
// violation has its own.
var settings = map[string]string{"shared_preload_libraries": "plpgsql"}

// setUp creates the databases, whose roles have random passwords.
func setUp(ctx context.Context, cluster *pgtemp.Cluster, secrets showcase.Options) (err error) {
	var stored showcase.Options
	if stored.AppPassword, err = pgtemp.Secret(secrets.AppPassword); err != nil {
		return err
	}
	if stored.ReplayPassword, err = pgtemp.Secret(secrets.ReplayPassword); err != nil {
		return err
	}
	return showcase.Setup(ctx, cluster.DSN("postgres"), stored)
}

// makeCopies makes D0 and D1 as dpwatch neighbours create does.
func makeCopies(ctx context.Context, c config.Config) error {
	o, err := stages.NeighbourOptions(c)
	if err == nil {
		_, err = neighbours.Create(ctx, o)
	}
	if err != nil {
		return fmt.Errorf("the demo's copies: %w", err)
	}
	return nil
}

// tokenFile holds the token of a user who may see values and change things.
type tokenFile struct{ path, token string }

func newTokenFile() (tokenFile, error) {
	f, err := os.CreateTemp("", "dpwatch-demo-token-")
	if err != nil {
		return tokenFile{}, err
	}
	t := tokenFile{f.Name(), rand.Text()}
	_, err = fmt.Fprintln(f, "auditor,operator demo", t.token)
	return t, errors.Join(err, f.Close())
}

// traffic sends traffic until every planted query has a verdict, or until Patience or ctx ends.
func traffic(ctx context.Context, o Options, r *relay.Relay, board *board, screen *terminal.Screen, dsn string) (*Result, error) {
	ctx, cancel := context.WithTimeout(ctx, o.Patience)
	defer cancel()
	trafficCtx, stopTraffic := context.WithCancel(ctx)
	defer stopTraffic()
	user := &client{dsn: dsn}
	if !o.All {
		user.decided = board.some
	}
	var group errgroup.Group
	group.Go(func() error { return user.Run(trafficCtx, board.planted) })
	err := board.Wait(ctx, screen, o.MaxTrials)
	stopTraffic()
	if trafficErr := group.Wait(); trafficErr != nil {
		return nil, fmt.Errorf("the demo's client: %w", trafficErr)
	}
	if err != nil && !errors.Is(err, context.DeadlineExceeded) {
		return nil, errors.New("interrupted: the temporary PostgreSQL is removed")
	}
	found := board.Result()
	found.Statements, found.Failures = user.statements, user.failures
	found.Auditors = r.Engines.Starts()
	return found, nil
}

// clientDSN returns the DSN with which the demo's application connects through the proxy.
func clientDSN(r *relay.Relay, secrets showcase.Options) string {
	u := url.URL{
		Scheme: "postgres", User: url.UserPassword(showcase.AppRole, secrets.AppPassword),
		Host: r.Addresses()[0], Path: "/" + showcase.ShopDatabase, RawQuery: "sslmode=disable",
	}
	return u.String()
}

// confidence allows one false alarm in ten million audits. The demo audits eight honest queries with tight
// claims, so at most one demo in a million raises a false alarm.
const confidence = 0.9999999

var yamlText = template.Must(template.New("demo").Parse(`proxy:
  listen: {{.Listen}}
  upstream: {{.Upstream}}
  drain_timeout: 5s
admin:
  - {listen: {{.Admin}}}
{{- with .Tokens}}
  - {listen: 127.0.0.1:0, token_file: {{.}}}
{{- end}}
shadow:
  dsn: {{.Shadow}}
  d0: d0
  d1: [d1]
  twin: none
privacy:
  database: shop
  protected: [public.users, public.transactions]
  public: [public.stores]
  unit: {table: public.users, key: id}
neighbours:
  source: {{.Source}}
  target: {{.Target}}
  choose: [{rule: most_rows}]
claims:
  functions:
{{- range .Functions}}{{if .Epsilon}}
    - {name: {{.Name}}, epsilon: {{.Epsilon}}}
{{- end}}{{end}}
  settings: {epsilon: dp.epsilon, delta: dp.delta}
  trust: [comment, setting]
  safe_functions: [{{range $i, $f := .Functions}}{{if $i}}, {{end}}{{$f.Name}}{{end}}]
audit:
  confidence: {{.Confidence}}
  error_rate: per_audit
  max_trials: {{.MaxTrials}}
{{- if not .All}}
  measure_trials: 40
{{- end}}
  share: 1
ledger:
  dsn: {{.Target}}
  spool: {dir: {{.Spool}}}
`))

// configuration renders a configuration file.
func configuration(cluster *pgtemp.Cluster, o Options, secrets showcase.Options, tokens string) ([]byte, error) {
	var b bytes.Buffer
	err := yamlText.Execute(&b, map[string]any{
		"Listen": o.Listen, "Admin": o.Admin, "Tokens": tokens, "Upstream": fmt.Sprintf("%s:%d", cluster.Host(), cluster.Port()),
		"Shadow":    cluster.UserDSN(showcase.ShadowDatabase, showcase.ReplayRole, secrets.ReplayPassword),
		"Source":    cluster.DSN(showcase.ShopDatabase),
		"Target":    cluster.DSN(showcase.ShadowDatabase),
		"Spool":     filepath.Join(cluster.Dir(), "spool"), // removed with the cluster: another demo must not go on with its queries
		"Functions": zoo.Functions(), "MaxTrials": o.MaxTrials, "All": o.All, "Confidence": confidence,
	})
	if err != nil {
		return nil, fmt.Errorf("demo configuration: %w", err)
	}
	return b.Bytes(), nil
}
