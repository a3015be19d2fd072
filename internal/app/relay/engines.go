package relay

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"

	"github.com/dpwatch/dpwatch/config"
	"github.com/dpwatch/dpwatch/internal/app/setup"
	"github.com/dpwatch/dpwatch/internal/app/status"
)

// Engines are the audited engines: what their auditors report, and what an operator can have them do.
type Engines struct {
	cfg config.Config
	all []*auditedEngine
	log *zap.Logger
}

// newEngines returns the engines of a configuration. resolved is the same configuration for their auditors, of which
// auditor describes the process.
func newEngines(c config.Config, resolved config.Resolved, auditor auditorProcess, log *zap.Logger) (*Engines, error) {
	es := &Engines{cfg: c, log: log}
	all := c.AllEngines()
	for _, one := range all {
		process, of := auditor, log
		if !setup.HasStdout(one) {
			process.stdout = nil
		}
		if len(all) > 1 {
			resolved, of = resolved.ForEngine(one.EngineName()), log.With(zap.String("dp.engine", one.EngineName()))
		}
		engine, err := newAuditedEngine(one, resolved, process, of)
		if err != nil {
			return nil, err
		}
		es.all = append(es.all, engine)
	}
	return es, nil
}

// run runs the auditors until ctx ends.
func (es *Engines) run(ctx context.Context, group *errgroup.Group) {
	for _, e := range es.all {
		group.Go(func() error { return e.supervisor.Run(ctx) })
	}
}

// routes returns the routes of all engines.
func (es *Engines) routes() routes {
	var all routes
	for _, e := range es.all {
		all = append(all, e.routes...)
	}
	return all
}

// mayHoldValues records that the status of an auditor may hold values from now on.
func (es *Engines) mayHoldValues() {
	for _, e := range es.all {
		e.shown.mayHold.Store(true)
	}
}

// Starts returns the number of starts of all auditor processes.
func (es *Engines) Starts() uint64 {
	var n uint64
	for _, e := range es.all {
		n += e.supervisor.Stats().Starts
	}
	return n
}

// Names returns the names of the engines.
func (es *Engines) Names() []string {
	var names []string
	for _, e := range es.all {
		names = append(names, e.name())
	}
	return names
}

// engine returns the engine with this name; "" is the only one. The error lists the names.
func (es *Engines) engine(name string) (*auditedEngine, error) {
	if _, err := es.cfg.ForEngine(name); err != nil {
		return nil, err
	}
	i := slices.IndexFunc(es.all, func(e *auditedEngine) bool { return name == "" || e.name() == name })
	return es.all[i], nil
}

// Version returns a number that changes when the status of an engine does.
func (es *Engines) Version() uint64 {
	var sum uint64
	for _, e := range es.all {
		sum = 31*sum + e.shown.version(e)
	}
	return sum
}

// Snapshots returns the status of an engine, or of all with the name "". Without values, no text in it holds any.
func (es *Engines) Snapshots(engine string, values bool) ([]*status.Snapshot, error) {
	if engine != "" {
		e, err := es.engine(engine)
		if err != nil {
			return nil, err
		}
		s, err := e.shown.snapshot(e, values)
		return []*status.Snapshot{s}, err
	}
	var all []*status.Snapshot
	for _, e := range es.all {
		s, err := e.shown.snapshot(e, values)
		if err != nil {
			return nil, err
		}
		all = append(all, s)
	}
	return all, nil
}

// Overviews returns what the first page shows of an engine, or of all with the name "".
func (es *Engines) Overviews(engine string, values bool) ([]status.Overview, error) {
	snapshots, err := es.Snapshots(engine, values)
	if err != nil {
		return nil, err
	}
	var all []status.Overview
	for _, s := range snapshots {
		all = append(all, s.Overview())
	}
	return all, nil
}

// Jobs returns what the auditor of an engine does, or those of all with the name "".
func (es *Engines) Jobs(engine string, values bool) ([]status.Job, error) {
	snapshots, err := es.Snapshots(engine, values)
	if err != nil {
		return nil, err
	}
	var all []status.Job
	for _, s := range snapshots {
		j := s.Job()
		if e, err := es.engine(j.Engine); err == nil {
			j.Paused = e.supervisor.Paused() // the snapshot may be older
		}
		all = append(all, j)
	}
	return all, nil
}

func (es *Engines) statusJSON(values bool) ([]byte, error) {
	all := status.EnginesStatus{Version: setup.Version, Proxy: es.routes().stats()}
	for _, e := range es.all {
		text, err := e.statusJSON(values)
		if err != nil {
			return nil, err
		}
		all.Engines = append(all.Engines, text)
	}
	return json.Marshal(all)
}

// auditorMetrics returns the latest metrics of the auditors, of several with the label engine.
func (es *Engines) auditorMetrics() ([]byte, error) {
	if len(es.all) == 1 {
		return es.all[0].supervisor.Metrics(), nil
	}
	texts := map[string][]byte{}
	for _, e := range es.all {
		texts[e.name()] = e.supervisor.Metrics()
	}
	return labelEngines(texts)
}

// Pause pauses or resumes the replays of an engine; "" is all of them. Traffic and capture continue.
func (es *Engines) Pause(engine string, paused bool) error {
	some, log := es.all, es.log
	if engine != "" {
		e, err := es.engine(engine)
		if err != nil {
			return err
		}
		some, log = []*auditedEngine{e}, log.With(zap.String("engine", engine))
	}
	log.Info("replays", zap.Bool("paused", paused))
	for _, e := range some {
		e.supervisor.Pause(paused)
	}
	return nil
}

// maxLabel bounds the label of a deploy, in bytes.
const maxLabel = 100

// Deploy makes the auditor of an engine audit all queries again: another version of the engine was deployed, under a
// label. "" is the only engine.
func (es *Engines) Deploy(engine, label string) error {
	if label == "" || len(label) > maxLabel || strings.ContainsFunc(label, func(c rune) bool { return c <= ' ' || c > '~' }) {
		return errors.New("give the version that was deployed as label=...: 1 to 100 printable ASCII characters without spaces")
	}
	e, err := es.engine(engine)
	if err != nil {
		return err
	}
	es.log.Info("a deploy of the engine was posted", zap.String("label", label), zap.String("engine", e.name()))
	e.supervisor.Deploy(label)
	return nil
}
