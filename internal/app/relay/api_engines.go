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

// metrics writes the relay's metrics and then the latest ones of the auditors.
func (a *api) metrics(w http.ResponseWriter, registry *prometheus.Registry) {
	text, err := admin.MetricsText(registry)
	audits, auditErr := a.engines.auditorMetrics()
	if err := errors.Join(err, auditErr); err != nil { // the other metrics are served
		a.log.Warn("some metrics cannot be gathered", zap.Error(err))
	}
	w.Header().Set("Content-Type", string(expfmt.NewFormat(expfmt.TypeTextPlain)))
	_, _ = w.Write(append(text, audits...))
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

// deploy handles POST /api/engine: another version of the engine was deployed, under the label of the form. Its field
// engine names the one of several engines.
func (a *api) deploy(w http.ResponseWriter, req *http.Request) {
	if err := a.engines.Deploy(req.FormValue("engine"), req.FormValue("label")); err != nil {
		http.Error(w, "dpwatch: "+err.Error(), http.StatusBadRequest)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}
