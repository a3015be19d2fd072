package relay

import (
	"bytes"
	"errors"
	"maps"
	"net/http"
	"slices"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"go.uber.org/zap"

	"github.com/dpwatch/dpwatch/internal/app/admin"
)

// engine returns the engine with this name; "" is the only one. The error lists the names.
func (r *Relay) engine(name string) (*auditedEngine, error) {
	if _, err := r.cfg.ForEngine(name); err != nil {
		return nil, err
	}
	i := slices.IndexFunc(r.engines, func(e *auditedEngine) bool { return name == "" || e.name() == name })
	return r.engines[i], nil
}

// Pause pauses or resumes the replays of all engines; traffic and capture continue.
func (r *Relay) Pause(paused bool) {
	r.log.Info("replays", zap.Bool("paused", paused))
	for _, e := range r.engines {
		e.supervisor.Pause(paused)
	}
}

// pause pauses or resumes the replays of one engine; "" is all of them.
func (r *Relay) pause(engine string, paused bool) error {
	if engine == "" {
		r.Pause(paused)
		return nil
	}
	e, err := r.engine(engine)
	if err != nil {
		return err
	}
	r.log.Info("replays", zap.Bool("paused", paused), zap.String("engine", engine))
	e.supervisor.Pause(paused)
	return nil
}

// metrics writes the relay's metrics and then the latest ones of the auditors.
func (r *Relay) metrics(w http.ResponseWriter, registry *prometheus.Registry) {
	text, err := admin.MetricsText(registry)
	audits, auditErr := r.auditorMetrics()
	if err := errors.Join(err, auditErr); err != nil { // the other metrics are served
		r.log.Warn("some metrics cannot be gathered", zap.Error(err))
	}
	w.Header().Set("Content-Type", string(expfmt.NewFormat(expfmt.TypeTextPlain)))
	_, _ = w.Write(append(text, audits...))
}

// auditorMetrics returns the latest metrics of the auditors, of several with the label engine.
func (r *Relay) auditorMetrics() ([]byte, error) {
	if len(r.engines) == 1 {
		return r.engines[0].supervisor.Metrics(), nil
	}
	texts := map[string][]byte{}
	for _, e := range r.engines {
		texts[e.name()] = e.supervisor.Metrics()
	}
	return labelEngines(texts)
}

// labelEngines returns metrics of several engines, by name and in Prometheus's text format, as one text in which each
// has the label engine. With an error, it returns those that could be read.
func labelEngines(texts map[string][]byte) ([]byte, error) {
	var errs []error
	all := map[string]*dto.MetricFamily{}
	for _, engine := range slices.Sorted(maps.Keys(texts)) {
		parser := expfmt.NewTextParser(model.UTF8Validation)
		families, err := parser.TextToMetricFamilies(bytes.NewReader(texts[engine]))
		if err != nil {
			errs = append(errs, err)
			continue
		}
		name := "engine"
		for _, f := range families {
			for _, m := range f.Metric {
				m.Label = append(m.Label, &dto.LabelPair{Name: &name, Value: &engine})
			}
			if known := all[f.GetName()]; known != nil {
				known.Metric = append(known.Metric, f.Metric...)
			} else {
				all[f.GetName()] = f
			}
		}
	}
	var out bytes.Buffer
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if _, err := expfmt.MetricFamilyToText(&out, all[name]); err != nil {
			errs = append(errs, err)
		}
	}
	return out.Bytes(), errors.Join(errs...)
}
