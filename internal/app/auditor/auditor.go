package auditor

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"runtime/debug"
	"runtime/metrics"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"go.uber.org/zap"

	"github.com/dpwatch/dpwatch/analysis"
	"github.com/dpwatch/dpwatch/config"
	"github.com/dpwatch/dpwatch/internal/alert"
	"github.com/dpwatch/dpwatch/internal/app/admin"
	"github.com/dpwatch/dpwatch/internal/app/setup"
	"github.com/dpwatch/dpwatch/internal/app/stages"
	"github.com/dpwatch/dpwatch/internal/audit"
	"github.com/dpwatch/dpwatch/internal/audit/budget"
	"github.com/dpwatch/dpwatch/internal/audit/step"
	"github.com/dpwatch/dpwatch/internal/audit/view"
	"github.com/dpwatch/dpwatch/internal/capture"
	"github.com/dpwatch/dpwatch/internal/link"
	"github.com/dpwatch/dpwatch/internal/pg/ident"
	"github.com/dpwatch/dpwatch/internal/sqltext"
	"github.com/dpwatch/dpwatch/internal/withheld"
	"github.com/dpwatch/dpwatch/replay"
	"github.com/dpwatch/dpwatch/replay/throttle"
	"github.com/dpwatch/dpwatch/rewrite"
)

// reportEvery is the interval at which the auditor reports to the relay, which also shows that it is alive.
const reportEvery = 500 * time.Millisecond

// Run audits the queries that come over the link until the relay closes it.
func Run(ctx context.Context, env setup.Environment, conn net.Conn) error {
	defer conn.Close() //nolint:errcheck // the process ends
	in, out := link.NewReader(conn), link.NewWriter(conn)
	c, err := readConfiguration(in)
	if err != nil {
		return err
	}
	log, err := setup.NewLogger(env.Stderr, c.Log.Level)
	if err != nil {
		return err
	}
	log = log.Named("auditor")
	if c.Engine.Name != "" {
		log = log.With(zap.String("dp.engine", c.Engine.Name))
	}
	registry, err := newRegistry(c)
	if err != nil {
		return err
	}
	debug.SetMemoryLimit(int64(c.Audit.Memory))
	gate := stages.NewGate(c)
	alerts, err := newAlerts(c, env.Stdout, log.Named("alert"), registry)
	if err != nil {
		return err
	}
	auditor, err := newAuditor(c, gate, out, alerts.send, log, registry)
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(ctx)
	var group sync.WaitGroup
	group.Go(func() {
		if err := auditor.Run(ctx); err != nil {
			log.Error("the auditor failed", zap.Error(err))
			_ = conn.Close() // ends receive: the relay starts another process
		}
	})
	status := func() view.Status {
		s := auditor.Status()
		s.Alerts = alerts.state()
		return s
	}
	group.Go(func() { reportUntil(ctx, out, status, auditor.Settled, registry, log) })
	group.Go(func() { contain(log, "set the pace", func() { stages.ApplyDefaultPace(ctx, c, gate, log) }) })
	group.Go(func() { alerts.run(ctx, auditor) })
	err = receive(in, auditor, gate, log)
	stop()
	group.Wait()
	contain(log, "report", func() { report(out, status, auditor.Settled, registry, log) }) // the final report
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// newRegistry returns the registry of the auditor's metrics, including those of its process.
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

// goMemory returns the memory, in bytes, that runtime/debug.SetMemoryLimit limits.
func goMemory() float64 {
	samples := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	metrics.Read(samples)
	return float64(samples[0].Value.Uint64() - samples[1].Value.Uint64())
}

// readConfiguration reads the configuration, the first frame. This process cannot resolve ${NAME}: it does not have the
// relay's environment.
func readConfiguration(in *link.Reader) (config.Config, error) {
	kind, payload, err := in.Next()
	if err != nil {
		return config.Config{}, fmt.Errorf("auditor: no configuration from the relay: %w", err)
	}
	if kind != link.Hello {
		return config.Config{}, fmt.Errorf("auditor: the first frame from the relay has kind %q: it must be the configuration", kind)
	}
	c, err := config.DecodeResolved(payload)
	if err != nil {
		return c, fmt.Errorf("auditor: configuration from the relay: %w", err)
	}
	return c, nil
}

// receive passes captured queries to the auditor until the link ends. It does not wait for parsing, so that a flood of
// one kind of query does not fill the link.
func receive(in *link.Reader, auditor *audit.Auditor, gate *throttle.Gate, log *zap.Logger) error {
	for {
		kind, payload, err := in.Next()
		if err != nil {
			return err
		}
		contain(log, "receive", func() { pass(kind, payload, auditor, gate, log) })
	}
}

// pass passes a frame to the auditor.
func pass(kind link.Kind, payload []byte, auditor *audit.Auditor, gate *throttle.Gate, log *zap.Logger) {
	switch kind {
	case link.Pause:
		if len(payload) == 1 {
			gate.Pause(payload[0] == 1)
		}
	case link.Counts:
		var statements map[string]uint64
		if json.Unmarshal(payload, &statements) == nil {
			auditor.Uncaptured(statements)
		}
	case link.Samples:
		var samples []capture.Sample
		if json.Unmarshal(payload, &samples) == nil {
			auditor.Samples(samples)
		}
	case link.Deploy:
		auditor.Deploy(string(payload))
	case link.Query:
		q, err := capture.DecodeBinary(payload)
		if err != nil {
			log.Warn("a captured query cannot be decoded and is dropped", zap.Error(err))
			auditor.Undecoded()
			return
		}
		auditor.Offer(q)
	}
}

// contain calls f, and logs a panic instead of ending the process.
func contain(log *zap.Logger, where string, f func()) {
	defer func() {
		if r := recover(); r != nil {
			log.Error("panic recovered", zap.String("where", where), zap.NamedError("panic", withheld.Recovered(r)), zap.Stack("stack"))
		}
	}()
	f()
}

// announcer returns a function that reports to the relay before and after the SQL library parses a statement. The relay
// sets its shape aside if this process ends in between. Send errors are ignored, because receive detects a closed link.
func announcer(out *link.Writer) func(sql string) (done func()) {
	return func(sql string) func() {
		hash := sqltext.Shape(sql)
		_ = out.Send(link.Begin, hash[:])
		return func() { _ = out.Send(link.End, hash[:]) }
	}
}

// announceNames returns renew, which reads the catalogs, with a report to the relay after each reading: when it began,
// and the names, if they have changed. catalog: privacy.catalog is set; the names of the shadow alone are not reported
// then.
func announceNames(renew func(context.Context) (*rewrite.Rewriter, error), catalog bool, out *link.Writer) func(context.Context) (*rewrite.Rewriter, error) {
	var sent []byte
	return func(ctx context.Context) (*rewrite.Rewriter, error) {
		began := time.Now()
		r, err := renew(ctx)
		if r == nil || catalog && !r.KnowsSource() {
			return r, err
		}
		var v capture.Vocabulary
		names, known := r.Names()
		text, _ := json.Marshal(names) // strings can always be encoded
		if known && !bytes.Equal(text, sent) {
			v.Names = &names
		}
		if err == nil {
			v.Read = began
		}
		frame, _ := json.Marshal(v)
		if known && out.Send(link.Names, frame) == nil {
			sent = text
		}
		return r, err
	}
}

func reportUntil(ctx context.Context, out *link.Writer, status func() view.Status, settled func() capture.Settled, registry *prometheus.Registry, log *zap.Logger) {
	tick := time.NewTicker(reportEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			contain(log, "report", func() { report(out, status, settled, registry, log) })
		}
	}
}

func report(out *link.Writer, status func() view.Status, settled func() capture.Settled, registry *prometheus.Registry, log *zap.Logger) {
	sendSettled(out)(settled())
	s := status()
	text, err := s.AppendJSON(nil)
	if err != nil {
		log.Error("write status", zap.Error(err))
		return
	}
	_ = out.Send(link.Status, text) // receive detects a closed link
	text, err = admin.MetricsText(registry)
	if err != nil {
		log.Error("the auditor's metrics cannot be gathered", zap.Error(err))
		return
	}
	_ = out.Send(link.Metrics, text)
}

// sendSettled returns a function that reports what has a lasting record.
func sendSettled(out *link.Writer) func(capture.Settled) {
	return func(s capture.Settled) { _ = out.Send(link.Settled, s.AppendBinary(nil)) }
}

// newAuditor returns the auditor that the configuration describes.
func newAuditor(c config.Config, gate *throttle.Gate, out *link.Writer, send func(alert.Finding), log *zap.Logger, registry *prometheus.Registry) (*audit.Auditor, error) {
	opt, err := auditorOptions(c, gate, log, registry)
	if err != nil {
		return nil, err
	}
	stages.SetEngines(&opt, c)
	opt.Renew = announceNames(opt.Renew, c.Privacy.Catalog != "", out)
	opt.Announce, opt.OnFinding, opt.Ledger, opt.Spool, opt.Retention = announcer(out), send, setup.OpenLedger(c), setup.OpenSpool(c), time.Duration(c.Ledger.Retention)
	opt.OnSettled = sendSettled(out)
	opt.Recorder, opt.Process = setup.OpenRecorder(c), setup.ThisProcess(c)
	opt.Suspected = c.Alerts.Suspected
	opt.Budgets, opt.Unclaimed = setup.PrivacyBudgets(c), stages.UnclaimedRules(c.Privacy.UnclaimedReads)
	return audit.New(opt)
}

// auditorOptions translates the configuration to the options of each stage that auditors and workers use.
func auditorOptions(c config.Config, gate *throttle.Gate, log *zap.Logger, registry prometheus.Registerer) (audit.Options, error) {
	rewriter, err := rewrite.New(stages.RewriteOptions(c))
	if err != nil {
		return audit.Options{}, err
	}
	budget := budget.New(budget.Limits{Trials: c.Audit.Budget.TrialsPerHour, Seconds: c.Audit.Budget.DatabaseSeconds}, gate, time.Now)
	options := stages.ReplayOptions(c, stages.Pace(gate, budget))
	options.Warn = func(text string) { log.Warn("engine", zap.String("warning", text)) }
	player, err := replay.New(options)
	if err != nil {
		return audit.Options{}, err
	}
	return audit.Options{
		Rewriter: rewriter, Renew: stages.Rewriters(c), RenewEvery: time.Duration(c.Tuning.CatalogRefresh), Defaults: stages.Defaults(c), Player: step.Replays(player), Evaluate: stages.Evaluate(c, player), Gate: gate, Budget: budget, D0: c.Shadow.D0, D1: c.Shadow.D1, Twin: c.Shadow.TwinSchema(), Guard: c.Shadow.GuardSchema(), Tables: ident.BareNames(c.Privacy.Protected),
		Hoist: c.Audit.Hoist, NoiseFunctions: stages.NoiseFunctions(c),
		OwnText: c.Shadow.OwnEngines(), Observe: c.Audit.Observe,
		Family: c.Audit.ErrorRate != config.PerAudit, Discoveries: c.Audit.ErrorRate == config.FDR,
		Analysis: analysis.Options{
			Confidence: c.Audit.Confidence, MaxTrials: c.Audit.MaxTrials,
			Deterministic: analysis.DeterministicPolicy(c.Audit.Deterministic), FloatingPoint: analysis.FloatingPointPolicy(c.Audit.FloatingPoint),
		},
		VaryText: c.Audit.Confirm.VaryText, MeasureTrials: c.Audit.Measure,
		BatchTrials: c.Tuning.BatchTrials, TurnTrials: setup.TurnTrials, Workers: c.Audit.Workers, MaxAudits: c.Audit.MaxAudits, PerShape: c.Tuning.MaxPerShape, Memory: int64(c.Audit.Memory) / 2,
		Repeat:     time.Duration(c.Audit.Repeat),
		WatchShare: c.Audit.WatchShare, ControlShare: c.Audit.ControlShare, SequenceWindow: setup.SequenceWindow(c.Audit),
		RetryAfter: time.Duration(c.Tuning.RetryAfter), RescueAfter: time.Duration(c.Tuning.RescueAfter), ShowSQL: c.Log.ShowsSQL(), ShowValues: c.Log.ShowsValues(),
		Route: setup.RouteOf(&c), Logger: log, Metrics: registry, Now: time.Now, Seed: rand.Uint64,
	}, nil
}
