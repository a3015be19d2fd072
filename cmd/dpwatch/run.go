package main

import (
	"os"
	"os/signal"
	"runtime"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"go.uber.org/zap"

	"github.com/dpwatch/dpwatch/config"
	"github.com/dpwatch/dpwatch/internal/app/relay"
	"github.com/dpwatch/dpwatch/internal/app/setup"
	"github.com/dpwatch/dpwatch/internal/pages"
	"github.com/dpwatch/dpwatch/proxy"
)

// relayThreads returns GOMAXPROCS for the relay, given its default: two for every event loop. With fewer threads, Go's
// scheduler searches for work less often when a message wakes a thread, which is most of the cost of a message. With
// only one, a loop and the rest of the process wait for each other (docs/measured/performance.md).
func relayThreads(all int) int { return max(2, min(all, 2*proxy.DefaultLoops())) }

func runCommand(env environment) *cobra.Command {
	cmd := &cobra.Command{
		Use: "run", Short: "Run the sidecar: the proxy and its auditor", Args: cobra.NoArgs,
		Long: `Run the sidecar until SIGTERM or Ctrl-C; then sessions can finish until proxy.drain_timeout.
A second signal ends the process at once. An error or crash of the auditor does not affect the clients' sessions.
SIGHUP, and POST /api/reload, read the configuration again, all of it or nothing: what only the auditor uses takes effect, other changes are refused
and need a restart (docs/admin.md). TLS files are reloaded when they are replaced.
SIGUSR1 pauses replays and SIGUSR2 resumes them, as do POST /api/pause and /api/resume on the admin port, with a token
(admin.token_file) or through its Unix socket. POST /api/engine with label=VERSION reports a deploy of the engine: its queries
are audited again. The auditor process receives its configuration over a private channel, and only
the environment variables TZ, ZONEINFO, SSL_CERT_FILE, SSL_CERT_DIR and those of the Go runtime; PG* variables have no effect.`,
		Example: "  dpwatch run --config dpwatch.yaml",
	}
	path := configFlag(cmd)
	workers := cmd.Flags().Int("workers", 0, "number of audits that replay concurrently in this process, in place of audit.workers;\n0: only the processes of dpwatch worker replay")
	observe := cmd.Flags().Bool("observe", false, "capture, recognize and plan queries, and replay nothing (audit.observe)")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		read := func() (config.Config, config.Resolved, error) {
			c, resolved, err := setup.Load(env, *path)
			if *observe {
				c.SetObserve()
				resolved.SetObserve()
			}
			if cmd.Flags().Changed("workers") {
				c.SetWorkers(*workers)
				resolved.SetWorkers(*workers)
			}
			return c, resolved, err
		}
		c, resolved, err := read()
		if err != nil {
			return err
		}
		if err := setup.CheckWorkers(c); err != nil {
			return err
		}
		if env.Getenv("GOMAXPROCS") == "" && !c.UsesTLS() { // goroutines handle TLS, on all processors
			runtime.GOMAXPROCS(relayThreads(runtime.GOMAXPROCS(0)))
		}
		lines := setup.NewLogQueue(env.Stderr)
		defer lines.Close(logGrace)
		log, err := setup.NewLogger(lines, c.Log.Level)
		if err != nil {
			return err
		}
		var r *relay.Relay
		ready := make(chan struct{})
		defer outlive(func() {
			<-ready
			_, _ = r.Configuration.Reload(read) // it logs an error
		})()
		pauses := make(chan os.Signal, 1)
		signal.Notify(pauses, syscall.SIGUSR1, syscall.SIGUSR2) // before the process reports that it runs: their default action would end it
		defer func() { signal.Stop(pauses); close(pauses) }()
		if r, err = relay.New(env, c, resolved, log, env.Stderr, nil); err != nil {
			return err
		}
		shown, err := pages.New(r, log)
		if err != nil {
			return err
		}
		r.SetPages(shown)
		r.Configuration.SetRead(read)
		close(ready)
		if ignored := setup.IgnoredVariables(env.Getenv); len(ignored) > 0 {
			log.Warn("these environment variables have no effect on the auditor's connections: set their values in the connection strings of the configuration", zap.Strings("variables", ignored))
		}
		for _, u := range c.Unused() {
			log.Warn("setting without effect", zap.String("key", u.Path), zap.String("reason", u.Text))
		}
		go pauseOnSignals(r, pauses)
		log.Info("dpwatch is up", zap.String("version", setup.Version), zap.Strings("listen", r.Addresses()),
			zap.Strings("admin", r.AdminAddresses()), zap.Int("routes", r.Routes()), zap.Bool("capture", c.Proxy.Capture))
		return r.Run(cmd.Context())
	}
	return cmd
}

// logGrace limits how long the end of the process waits for a reader of the log.
const logGrace = time.Second

// pauseOnSignals pauses replays on SIGUSR1 and resumes them on SIGUSR2, until the channel is closed.
func pauseOnSignals(r *relay.Relay, signals <-chan os.Signal) {
	for s := range signals {
		_ = r.Engines.Pause("", s == syscall.SIGUSR1)
	}
}
