package relay

import (
	"encoding/json"
	"fmt"
	"io"
	"os/exec"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/dpwatch/dpwatch/config"
	"github.com/dpwatch/dpwatch/internal/app/records"
	"github.com/dpwatch/dpwatch/internal/app/setup"
	"github.com/dpwatch/dpwatch/internal/app/status"
	"github.com/dpwatch/dpwatch/internal/capture"
	"github.com/dpwatch/dpwatch/internal/supervise"
	"github.com/dpwatch/dpwatch/proxy"
)

// auditedEngine is what the relay has for one engine: its routes, the queue of their captured queries, and an auditor
// process of its own, so that a fault of one engine's audits does not affect those of another.
type auditedEngine struct {
	cfg        config.Config // of this engine alone
	routes     routes
	queue      *capture.Queue
	samples    capture.Samples // of statements that are not sent to the auditor
	supervisor *supervise.Supervisor
	shown      shown // on pages
	mentions   atomic.Pointer[func(sql string) bool]
}

// auditorProcess is how an auditor process is started, and what receives its output.
type auditorProcess struct {
	binary      string
	environment []string
	log         io.Writer
	stdout      io.Writer    // for alerts; nil = none is configured
	onStatus    func([]byte) // may be nil
}

func (a auditorProcess) command() *exec.Cmd {
	cmd := exec.Command(a.binary, "auditor")
	cmd.Stderr, cmd.Stdout = a.log, a.stdout
	cmd.Env = a.environment
	return cmd
}

// newAuditedEngine returns the engine of a configuration of one engine. resolved is the same configuration for its
// auditor.
func newAuditedEngine(c config.Config, resolved config.Resolved, auditor auditorProcess, log *zap.Logger) (*auditedEngine, error) {
	greeting, err := resolved.Encode()
	if err != nil {
		return nil, fmt.Errorf("encode the configuration for the auditor: %w", err)
	}
	e := &auditedEngine{cfg: c, queue: capture.NewQueue(c.Tuning.QueueLength, queueBytes)}
	e.setNames(setup.ProtectedNames(&c))
	e.supervisor = supervise.New(supervise.Options{
		Command: auditor.command,
		Hello:   greeting, Queue: e.queue, HangLimit: time.Duration(c.Tuning.AuditorHangLimit), ParseTimeout: parseTimeout, StopGrace: setup.AuditorGrace,
		MaxRate: c.Tuning.CaptureRate, Logger: log.Named("supervise"), OnStatus: auditor.onStatus, OnNames: e.receiveNames, Uncaptured: e.uncaptured, Samples: &e.samples,
	})
	for i := range c.Proxy.AllRoutes() {
		one, err := NewRoute(&c, i, e, e.maybeProtected, &e.samples, log)
		if err != nil {
			return nil, err
		}
		if err := one.check(log); err != nil {
			return nil, err
		}
		e.routes = append(e.routes, one)
	}
	return e, nil
}

// setNames sets the names of which a captured statement contains one; nil = every statement is captured.
func (e *auditedEngine) setNames(names []string) {
	mentions := capture.Mentions(names)
	e.mentions.Store(&mentions)
}

// receiveNames takes the names from the auditor, which knows the engine's catalog.
func (e *auditedEngine) receiveNames(payload []byte) {
	var names []string
	if json.Unmarshal(payload, &names) == nil {
		e.setNames(names)
	}
}

// Offer implements [proxy.Sink].
func (e *auditedEngine) Offer(q capture.Query) bool {
	ok := e.queue.Offer(q)
	if !ok && e.samples.Wants(records.ReasonQueueFull, q.User, q.Database, q.ApplicationName) {
		e.samples.Add(capture.SampleOf(records.ReasonQueueFull, q, false))
	}
	return ok
}

// maybeProtected reports whether a statement contains one of the names.
func (e *auditedEngine) maybeProtected(sql string) bool { return (*e.mentions.Load())(sql) }

// name returns the name of the engine in the ledger, which the admin API and metrics use as well.
func (e *auditedEngine) name() string { return e.cfg.EngineName() }

// stats returns the sum of the counters of the engine's routes.
func (e *auditedEngine) stats() proxy.Stats { return e.routes.stats() }

// uncaptured returns the numbers of statements that were not sent to the auditor, by reason. A session whose capture
// stopped, or never began, counts as one, because the number of its statements is not known.
func (e *auditedEngine) uncaptured() map[string]uint64 {
	stats := e.stats()
	counts := status.SkippedStatements(stats)
	counts[records.ReasonNotFollowed] = stats.UncapturedProtocol + stats.UncapturedPanic + stats.UncapturedPassthrough
	counts[records.ReasonQueueFull] = e.queue.Stats().Dropped
	s := e.supervisor.Stats()
	counts[records.ReasonAuditorEnded], counts[records.ReasonSetAside] = s.QueriesLost, s.SetAside
	return counts
}
