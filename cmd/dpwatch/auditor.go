package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"runtime/debug"
	"runtime/metrics"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/common/expfmt"
	"github.com/spf13/cobra"
	"go.uber.org/zap"

	"github.com/dpwatch/dpwatch/analysis"
	"github.com/dpwatch/dpwatch/config"
	"github.com/dpwatch/dpwatch/internal/alert"
	"github.com/dpwatch/dpwatch/internal/audit"
	"github.com/dpwatch/dpwatch/internal/capture"
	"github.com/dpwatch/dpwatch/internal/link"
	"github.com/dpwatch/dpwatch/internal/sqltext"
	"github.com/dpwatch/dpwatch/internal/supervise"
	"github.com/dpwatch/dpwatch/replay"
	"github.com/dpwatch/dpwatch/replay/gentle"
	"github.com/dpwatch/dpwatch/rewrite"
)

// auditorCommand is the child process that the relay starts; it is not for people.
func auditorCommand(env environment) *cobra.Command {
	return &cobra.Command{
		Use: "auditor", Hidden: true, Args: cobra.NoArgs,
		Short: "The auditor process; started by run and demo",
		RunE: func(cmd *cobra.Command, _ []string) error {
			defer outlive(func() {})()
			file := os.NewFile(supervise.LinkFD, "relay")
			conn, err := net.FileConn(file)
			if err != nil {
				return errors.New("auditor is started by dpwatch run, not by hand: use dpwatch run --config FILE")
			}
			_ = file.Close()
			return runAuditor(cmd.Context(), env, conn)
		},
	}
}

// speakEvery is how often the auditor tells the relay what it knows; it also shows that it is alive.
const speakEvery = 500 * time.Millisecond

// runAuditor audits what comes over the link until the relay closes it.
func runAuditor(ctx context.Context, env environment, conn net.Conn) error {
	defer conn.Close() //nolint:errcheck // the process ends
	in, out := link.NewReader(conn), link.NewWriter(conn)
	c, err := greeted(in)
	if err != nil {
		return err
	}
	log, err := newLogger(env.Stderr, c.Log.Level)
	if err != nil {
		return err
	}
	log = log.Named("auditor")
	registry, err := newRegistry(c)
	if err != nil {
		return err
	}
	debug.SetMemoryLimit(int64(c.Audit.Memory))
	gate := newGate(c)
	announce := announcer(out)
	auditor, err := newAuditor(c, gate, announce, log, registry)
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(ctx)
	var group sync.WaitGroup
	group.Go(func() {
		if err := auditor.Run(ctx); err != nil {
			log.Error("auditor", zap.Error(err))
		}
	})
	group.Go(func() { speak(ctx, out, auditor, registry, log) })
	group.Go(func() { applyDefaultPace(ctx, c, gate, log) })
	err = take(in, auditor, gate, log)
	stop()
	group.Wait()
	tell(out, auditor, registry, log) // the last word
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// newRegistry returns the registry of the auditor's metrics, with those of its process.
func newRegistry(c config.Config) (*prometheus.Registry, error) {
	registry := prometheus.NewRegistry()
	limit := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "dpwatch_auditor_memory_limit_bytes", Help: "Soft limit on the memory that Go manages in the auditor process.",
	})
	limit.Set(float64(c.Audit.Memory))
	heap := prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "dpwatch_auditor_memory_bytes", Help: "Memory that Go manages in the auditor process: what audit.memory limits.",
	}, goMemory)
	for _, collector := range []prometheus.Collector{
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{Namespace: "dpwatch_auditor"}), limit, heap,
	} {
		if err := registry.Register(collector); err != nil {
			return nil, err
		}
	}
	return registry, nil
}

// goMemory returns the bytes that runtime/debug.SetMemoryLimit limits.
func goMemory() float64 {
	samples := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	metrics.Read(samples)
	return float64(samples[0].Value.Uint64() - samples[1].Value.Uint64())
}

// greeted reads the configuration, which comes first. This process has no environment to read it with.
func greeted(in *link.Reader) (config.Config, error) {
	kind, payload, err := in.Next()
	if err != nil {
		return config.Config{}, fmt.Errorf("auditor: no configuration from the relay: %w", err)
	}
	if kind != link.Hello {
		return config.Config{}, fmt.Errorf("auditor: the relay began with a frame of kind %q, not with the configuration", kind)
	}
	c, err := config.DecodeResolved(payload)
	if err != nil {
		return c, fmt.Errorf("auditor: configuration from the relay: %w", err)
	}
	return c, nil
}

// take hands captured queries to the auditor until the link ends. It never waits for one to be parsed, so that the link does
// not fill with a flood of one kind of query.
func take(in *link.Reader, auditor *audit.Auditor, gate *gentle.Gate, log *zap.Logger) error {
	for {
		kind, payload, err := in.Next()
		if err != nil {
			return err
		}
		if kind == link.Pause && len(payload) == 1 {
			gate.Pause(payload[0] == 1)
		}
		if kind != link.Query {
			continue
		}
		q, err := capture.DecodeBinary(payload)
		if err != nil {
			log.Warn("captured query", zap.Error(err))
			continue
		}
		auditor.Offer(q)
	}
}

// announcer returns the function that tells the relay, before and after, that the SQL library reads a statement: its shape is
// what the relay sets aside if this process ends meanwhile. A relay that is gone is seen by take.
func announcer(out *link.Writer) func(sql string) (done func()) {
	return func(sql string) func() {
		hash := sqltext.Shape(sql)
		_ = out.Send(link.Begin, hash[:])
		return func() { _ = out.Send(link.End, hash[:]) }
	}
}

func speak(ctx context.Context, out *link.Writer, auditor *audit.Auditor, registry *prometheus.Registry, log *zap.Logger) {
	tick := time.NewTicker(speakEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			tell(out, auditor, registry, log)
		}
	}
}

func tell(out *link.Writer, auditor *audit.Auditor, registry *prometheus.Registry, log *zap.Logger) {
	status, err := json.Marshal(auditor.Status())
	if err != nil {
		log.Error("write status", zap.Error(err))
		return
	}
	_ = out.Send(link.Status, status) // a relay that is gone is seen by take
	families, err := registry.Gather()
	if err != nil {
		log.Error("gather metrics", zap.Error(err))
		return
	}
	var text bytes.Buffer
	for _, f := range families {
		if _, err := expfmt.MetricFamilyToText(&text, f); err != nil {
			log.Error("write metrics", zap.Error(err))
			return
		}
	}
	_ = out.Send(link.Metrics, text.Bytes())
}

// newAuditor translates the configuration to each stage's options.
func newAuditor(c config.Config, gate *gentle.Gate, announce func(string) func(), log *zap.Logger, registry *prometheus.Registry) (*audit.Auditor, error) {
	rewriter, err := rewrite.New(rewriteOptions(c))
	if err != nil {
		return nil, err
	}
	options := replayOptions(c, gate)
	options.Warn = func(text string) { log.Warn("engine", zap.String("warning", text)) }
	player, err := replay.New(options)
	if err != nil {
		return nil, err
	}
	sender, err := alert.New(log.Named("alert"), registry)
	if err != nil {
		return nil, err
	}
	return audit.New(audit.Options{
		Rewriter: rewriter, Renew: catalogs(c), RenewEvery: time.Duration(c.Privacy.CatalogRefresh), Player: player, Gate: gate, D0: c.Shadow.D0, D1: c.Shadow.D1, Tables: bareNames(c.Privacy.Protected),
		Hoist: c.Audit.Hoist, NoiseFunctions: noiseFunctions(c),
		OwnText: len(c.Shadow.Worlds) > 0,
		Family:  c.Audit.ErrorRate == config.Family,
		Analysis: analysis.Options{
			Confidence: c.Audit.Confidence, MaxTrials: c.Audit.MaxTrials,
			PriorOdds: c.Audit.PriorOdds, BreachOdds: c.Audit.BreachOdds,
			Deterministic: analysis.DeterministicPolicy(c.Audit.Deterministic),
		},
		VaryText:    c.Audit.Confirm.VaryText,
		BatchTrials: c.Audit.BatchTrials, TurnTrials: turnTrials, Workers: c.Audit.Workers, MaxAudits: c.Audit.MaxAudits, PerShape: c.Audit.MaxPerShape, Memory: int64(c.Audit.Memory) / 2,
		RetryAfter: time.Duration(c.Audit.RetryAfter), ShowSQL: c.Log.SQL, ShowValues: c.Log.Values,
		Announce: announce, Route: routes(&c), OnFinding: sender.Send, Logger: log, Metrics: registry, Now: time.Now, Seed: rand.Uint64,
	})
}

// noiseFunctions returns the declared DP functions, without their schemas.
func noiseFunctions(c config.Config) []string {
	var names []string
	for _, s := range rewriteOptions(c).Claims.Signatures {
		names = append(names, s.Function[strings.LastIndexByte(s.Function, '.')+1:])
	}
	return names
}

func replayOptions(c config.Config, pace replay.Pace) replay.Options {
	return replay.Options{
		DSN: c.Shadow.DSN.Reveal(), SearchPath: c.Shadow.SearchPath, Public: c.Privacy.Public,
		StatementTimeout: time.Duration(c.Shadow.StatementTimeout), ConnectTimeout: time.Duration(c.Shadow.ConnectTimeout),
		MaxRows: c.Shadow.MaxRows, MaxBytes: int64(c.Shadow.MaxResult), HoistBytes: int64(c.Audit.HoistSpace), Connections: auditConnections, Pace: pace,
		Engines: c.Shadow.Engines(), Copies: append([]string{c.Shadow.D0}, c.Shadow.D1...), Protocol: replay.Protocol(c.Shadow.Protocol),
	}
}

// auditConnections is how many connections one audit has.
const auditConnections = 2

// turnTrials is how many rounds one audit runs on its sessions, at least, before they are closed and another has its turn.
const turnTrials = 200

func rewriteOptions(c config.Config) rewrite.Options {
	opt := rewrite.Options{
		Database: c.Privacy.Database, Protected: tables(c.Privacy.Protected), Public: tables(c.Privacy.Public), SearchPath: c.Privacy.SearchPath,
		AllowFunctions: c.Claims.SafeFunctions, MaxBytes: int(c.Proxy.MaxStatement), MaxTokens: c.Audit.MaxTokens,
		Neighbours: append([]string{c.Shadow.D0}, c.Shadow.D1...),
		Claims: rewrite.ClaimRules{
			Combine:        c.Claims.Combine,
			EpsilonSetting: settingOrNone(c.Claims.Settings.Epsilon), DeltaSetting: settingOrNone(c.Claims.Settings.Delta),
		},
	}
	if len(c.Shadow.Engines()) == 0 { // an engine finds names in its own way
		opt.ShadowPath = c.Shadow.SearchPath
	}
	for _, f := range c.Claims.Functions {
		opt.Claims.Signatures = append(opt.Claims.Signatures, rewrite.Signature{
			Function: f.Name, Epsilon: f.Epsilon, Delta: f.Delta, EpsilonName: f.EpsilonName, DeltaName: f.DeltaName,
		})
	}
	for _, r := range c.Claims.Rules {
		opt.Claims.Rules = append(opt.Claims.Rules, rewrite.Rule{
			Name: r.Name, User: r.User, Database: r.Database, ApplicationName: r.ApplicationName,
			Table: table(r.Table), Pattern: r.Pattern, Epsilon: r.Epsilon, Delta: r.Delta,
		})
	}
	if d := c.Claims.Default; d != nil {
		opt.Claims.Default = &rewrite.Claim{Epsilon: d.Epsilon, Delta: d.Delta}
	}
	for _, t := range c.Claims.Trust {
		opt.Claims.TrustComment = opt.Claims.TrustComment || t == "comment"
		opt.Claims.TrustSetting = opt.Claims.TrustSetting || t == "setting"
	}
	return opt
}

// settingOrNone writes "no setting" as rewrite wants it.
func settingOrNone(name string) string {
	if name == "" {
		return "-"
	}
	return name
}

func tables(names []string) []rewrite.Table {
	out := make([]rewrite.Table, len(names))
	for i, name := range names {
		out[i] = table(name)
	}
	return out
}

// table splits schema.table, which the configuration's validation has seen; "" is the zero Table.
func table(name string) rewrite.Table {
	schema, rest, _ := strings.Cut(name, ".")
	return rewrite.Table{Schema: schema, Name: rest}
}
