package relay

import (
	"encoding/json"
	"net/http"

	"go.uber.org/zap"

	"github.com/dpwatch/dpwatch/internal/app/admin"
	"github.com/dpwatch/dpwatch/internal/app/setup"
	"github.com/dpwatch/dpwatch/internal/app/status"
	"github.com/dpwatch/dpwatch/internal/web"
)

func (e *auditedEngine) routeStatus() []status.RouteStatus {
	out := make([]status.RouteStatus, len(e.routes))
	for i, one := range e.routes {
		out[i] = status.RouteStatus{
			Name: one.cfg.Name, Upstream: one.cfg.Upstream.String(), Engine: e.name(), TLS: one.cfg.TLS.Mode, UpstreamTLS: one.cfg.UpstreamTLS.Mode,
			Captured: "yes", Proxy: one.Server.Stats(), Listen: admin.Addresses(one.listeners),
		}
		switch {
		case !e.cfg.Proxy.Capture:
			out[i].Captured = "no"
		case one.cfg.TLS.Mode == "passthrough":
			out[i].Captured = "only sessions without TLS: TLS is passed through to the engine and is not audited"
		}
	}
	return out
}

// status writes the proxy's counters and the auditor's latest status as one JSON object: those of the engine that the
// request names, or of the only one, or of all.
func (a *api) status(w http.ResponseWriter, q *http.Request) {
	var text []byte
	var err error
	if name := q.FormValue("engine"); name == "" && len(a.engines.all) > 1 {
		text, err = a.engines.statusJSON(web.MayReadValues(q.Context()))
	} else {
		e, unknown := a.engines.engine(name)
		if unknown != nil {
			http.Error(w, "dpwatch: "+unknown.Error(), http.StatusBadRequest)
			return
		}
		text, err = e.statusJSON(web.MayReadValues(q.Context()))
	}
	if err != nil { // the auditor's part is not valid JSON
		a.log.Error("write status", zap.Error(err))
		http.Error(w, "the auditor's status is not valid JSON: see dpwatch's log", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(append(text, '\n'))
}

// statusJSON returns the status of an engine. Without values, no text in it can hold any.
func (e *auditedEngine) statusJSON(values bool) ([]byte, error) {
	audit, err := e.shown.auditor(e, values)
	if err != nil {
		return nil, err
	}
	return json.Marshal(status.RelayStatus{
		Version: setup.Version, Engine: e.name(), Proxy: e.stats(), Routes: e.routeStatus(), Queue: e.queue.Stats(), Auditor: e.supervisor.Stats(),
		Audit: audit, Paused: e.supervisor.Paused(),
	})
}
