package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"
	"text/template"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/dpwatch/dpwatch/config"
	"github.com/dpwatch/dpwatch/internal/pgtemp"
	"github.com/dpwatch/dpwatch/internal/showcase"
	"github.com/dpwatch/dpwatch/internal/zoo"
)

// demoFlags are the flags of dpwatch demo.
type demoFlags struct {
	bindir    string
	listen    string
	admin     string
	maxTrials int
	patience  time.Duration
	keep      bool
	json      bool
}

func demoCommand(env environment) *cobra.Command {
	var f demoFlags
	cmd := &cobra.Command{
		Use: "demo", Short: "Everything on one machine: temporary PostgreSQL, honest and broken queries, verdicts", Args: cobra.NoArgs,
		Long: `Start a temporary PostgreSQL with the data of the method's showcase, an honest and a broken DP engine in it, the
proxy in front of it, and a client that sends a mix of queries through the proxy. Every DP query is audited; the table at
the end says what was planted and what was found. The cluster is gone afterwards.

Exit status: 0 when every verdict is as planted, 1 otherwise.`,
		Example: "  dpwatch demo\n  dpwatch demo --keep",
	}
	fs := cmd.Flags()
	fs.StringVar(&f.bindir, "pg-bindir", "", "directory with initdb and postgres (default: DPWATCH_PG_BINDIR, then the usual places)")
	fs.StringVar(&f.listen, "listen", "127.0.0.1:0", "where the proxy listens")
	fs.StringVar(&f.admin, "admin", "127.0.0.1:0", "where metrics and status are served")
	fs.IntVar(&f.maxTrials, "max-trials", 1500, "pairs of executions per query at most")
	fs.DurationVar(&f.patience, "patience", 15*time.Minute, "give up after so long")
	fs.BoolVar(&f.keep, "keep", false, "leave everything running afterwards, until Ctrl-C")
	asJSON := outputFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		js, err := asJSON()
		if err != nil {
			return err
		}
		f.json = js
		return demo(cmd.Context(), env, f)
	}
	return cmd
}

// demo runs the whole thing; whatever happens, the cluster is stopped at the end.
func demo(ctx context.Context, env environment, f demoFlags) (err error) {
	screen := newScreen(env.Stderr)
	began := time.Now()
	screen.Say("starting a temporary PostgreSQL")
	cluster, err := pgtemp.Start(ctx, pgtemp.Options{BinDir: f.bindir, Getenv: env.Getenv})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, cluster.Stop()) }()
	screen.Say("loading 100 users, 10,000 transactions, D0 and D1")
	secrets := showcase.Options{AppPassword: rand.Text(), ReplayPassword: rand.Text()}
	if err := showcase.Setup(ctx, cluster.DSN("postgres"), secrets); err != nil {
		return err
	}
	c, resolved, err := demoConfig(cluster, f, env, secrets)
	if err != nil {
		return err
	}
	log, err := newLogger(screen, "warn")
	if err != nil {
		return err
	}
	board := newBoard(showcase.Queries())
	r, err := newRelay(env, c, resolved, log, screen, board.Update)
	if err != nil {
		return err
	}
	relayCtx, stopRelay := context.WithCancel(context.WithoutCancel(ctx))
	defer stopRelay()
	var relay errgroup.Group
	relay.Go(func() error { return r.Run(relayCtx) })
	screen.Say(fmt.Sprintf("proxy on %s, metrics and status on http://%s, PostgreSQL on port %d", r.Addresses()[0], r.admin.addresses()[0], cluster.Port()))

	client := clientDSN(r, secrets)
	result, runErr := demoRun(ctx, f, r, board, screen, client)
	if runErr == nil {
		result.Seconds = time.Since(began).Seconds()
		runErr = result.Write(env, f.json)
	}
	var verdict *exitError
	if f.keep && (runErr == nil || errors.As(runErr, &verdict)) {
		screen.Say(fmt.Sprintf("still running: psql '%s'; Ctrl-C ends it", client))
		<-ctx.Done()
	}
	stopRelay()
	if err := relay.Wait(); err != nil && runErr == nil {
		runErr = err
	}
	return runErr
}

// demoRun sends traffic until every planted query has its verdict, patience ends, or ctx does.
func demoRun(ctx context.Context, f demoFlags, r *relay, board *board, screen *screen, dsn string) (*demoResult, error) {
	ctx, cancel := context.WithTimeout(ctx, f.patience)
	defer cancel()
	trafficCtx, stopTraffic := context.WithCancel(ctx)
	defer stopTraffic()
	client := &demoClient{dsn: dsn}
	var group errgroup.Group
	group.Go(func() error { return client.Run(trafficCtx, showcase.Queries()) })
	err := board.Wait(ctx, screen, f.maxTrials)
	stopTraffic()
	if trafficErr := group.Wait(); trafficErr != nil {
		return nil, fmt.Errorf("the demo's client: %w", trafficErr)
	}
	if err != nil && !errors.Is(err, context.DeadlineExceeded) {
		return nil, errors.New("interrupted; the temporary PostgreSQL is gone")
	}
	result := board.Result()
	result.Statements, result.Failures = client.statements, client.failures
	result.Auditors = r.supervisor.Stats().Starts
	return result, nil
}

// clientDSN is how the demo's application connects: through the proxy.
func clientDSN(r *relay, secrets showcase.Options) string {
	u := url.URL{
		Scheme: "postgres", User: url.UserPassword(showcase.AppRole, secrets.AppPassword),
		Host: r.Addresses()[0], Path: "/" + showcase.ShopDatabase, RawQuery: "sslmode=disable",
	}
	return u.String()
}

// demoConfidence allows one false alarm in ten million audits: the half a dozen audits of honest queries, whose claims are
// tight, raise none in all but one demo of a million.
const demoConfidence = 0.9999999

var demoYAML = template.Must(template.New("demo").Parse(`proxy:
  listen: {{.Listen}}
  upstream: {{.Upstream}}
  drain_timeout: 5s
admin:
  listen: {{.Admin}}
shadow:
  dsn: {{.Shadow}}
  d0: d0
  d1: [d1]
privacy:
  database: shop
  protected: [public.users, public.transactions]
  public: [public.stores]
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
  max_trials: {{.MaxTrials}}
  retry_after: 1s
  share: 1
`))

// demoConfig writes the configuration that a user would, and reads it as run does.
func demoConfig(cluster *pgtemp.Cluster, f demoFlags, env environment, secrets showcase.Options) (config.Config, config.Resolved, error) {
	var b strings.Builder
	err := demoYAML.Execute(&b, map[string]any{
		"Listen": f.listen, "Admin": f.admin, "Upstream": fmt.Sprintf("%s:%d", cluster.Host(), cluster.Port()),
		"Shadow":    cluster.UserDSN(showcase.ShadowDatabase, showcase.ReplayRole, secrets.ReplayPassword),
		"Functions": zoo.Functions(), "MaxTrials": f.maxTrials, "Confidence": demoConfidence,
	})
	if err != nil {
		return config.Config{}, config.Resolved{}, fmt.Errorf("demo configuration: %w", err)
	}
	c, resolved, err := config.ParseAndCheck("demo", []byte(b.String()), env.Getenv)
	if err != nil {
		return c, resolved, fmt.Errorf("demo configuration: %w", err)
	}
	return c, resolved, nil
}

// interactive reports whether w is a terminal.
func interactive(w any) bool {
	file, ok := w.(*os.File)
	return ok && isTerminal(file)
}
