package main

import (
	"runtime"

	"github.com/spf13/cobra"
	"go.uber.org/zap"

	"github.com/dpwatch/dpwatch/proxy"
)

// relayThreads is how many threads may run Go code in the relay on a machine that would give it as many as all: two
// for every event loop. Fewer threads look for work less often when a message wakes one, which is most of what a
// message costs; one alone makes a loop and the rest of the process wait for each other (docs/performance.md).
func relayThreads(all int) int { return max(2, min(all, 2*proxy.DefaultLoops())) }

func runCommand(env environment) *cobra.Command {
	cmd := &cobra.Command{
		Use: "run", Short: "Run the sidecar: the proxy and its auditor", Args: cobra.NoArgs,
		Long: `Run the sidecar until SIGTERM or Ctrl-C; sessions then may finish until proxy.drain_timeout.
A second signal ends it at once. No fault of the auditor reaches a client's session.`,
		Example: "  dpwatch run --config dpwatch.yaml",
	}
	path := configFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		c, raw, err := loadConfig(env, *path)
		if err != nil {
			return err
		}
		if env.Getenv("GOMAXPROCS") == "" && !c.Proxy.UsesTLS() { // TLS is worked on by goroutines, on all processors
			runtime.GOMAXPROCS(relayThreads(runtime.GOMAXPROCS(0)))
		}
		log, err := newLogger(env.Stderr, c.Log.Level)
		if err != nil {
			return err
		}
		r, err := newRelay(env, c, hello{File: *path, YAML: string(raw)}, log, env.Stderr, nil)
		if err != nil {
			return err
		}
		log.Info("dpwatch is up", zap.String("version", buildVersion()), zap.Strings("listen", r.Addresses()),
			zap.Int("routes", len(r.routes)), zap.Bool("capture", c.Proxy.Capture))
		return r.Run(cmd.Context())
	}
	return cmd
}
