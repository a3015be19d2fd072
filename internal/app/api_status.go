package app

import (
	"encoding/json"
	"net/http"

	"go.uber.org/zap"

	"github.com/dpwatch/dpwatch/internal/capture"
	"github.com/dpwatch/dpwatch/internal/supervise"
	"github.com/dpwatch/dpwatch/proxy"
)

// routeStatus is the status of one route.
type routeStatus struct {
	Name        string      `json:"name"`
	Listen      []string    `json:"listen"`
	Upstream    string      `json:"upstream"`
	Engine      string      `json:"engine"`
	TLS         string      `json:"tls"`
	UpstreamTLS string      `json:"upstream_tls"`
	Captured    string      `json:"captured"` // yes, no, or what is not captured
	Proxy       proxy.Stats `json:"proxy"`
}

func (e *auditedEngine) routeStatus() []routeStatus {
	out := make([]routeStatus, len(e.routes))
	for i, one := range e.routes {
		out[i] = routeStatus{
			Name: one.cfg.Name, Upstream: one.cfg.Upstream.String(), Engine: e.name(), TLS: one.cfg.TLS.Mode, UpstreamTLS: one.cfg.UpstreamTLS.Mode,
			Captured: "yes", Proxy: one.server.Stats(), Listen: addresses(one.listeners),
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

// relayStatus is the answer of GET /api/status for one engine.
type relayStatus struct {
	Version string             `json:"version"`
	Engine  string             `json:"engine"`
	Proxy   proxy.Stats        `json:"proxy"`
	Routes  []routeStatus      `json:"routes"`
	Queue   capture.QueueStats `json:"queue"`
	Auditor supervise.Stats    `json:"auditor"`
	Audit   json.RawMessage    `json:"audit"`  // an audit.Status; null = the auditor has not sent one
	Paused  bool               `json:"paused"` // the requested state; the auditor's pace reports the actual one
}

// enginesStatus is the answer of GET /api/status if there are several engines and the request names none.
type enginesStatus struct {
	Version string            `json:"version"`
	Proxy   proxy.Stats       `json:"proxy"`   // all routes together
	Engines []json.RawMessage `json:"engines"` // the relayStatus of each
}

// status writes the proxy's counters and the auditor's latest status as one JSON object: those of the engine that the request
// names, or of the only one, or of all.
func (r *Relay) status(w http.ResponseWriter, q *http.Request) {
	var text []byte
	var err error
	if name := q.FormValue("engine"); name == "" && len(r.engines) > 1 {
		text, err = r.statusJSON()
	} else {
		e, unknown := r.engine(name)
		if unknown != nil {
			http.Error(w, "dpwatch: "+unknown.Error(), http.StatusBadRequest)
			return
		}
		text, err = e.statusJSON()
	}
	if err != nil { // the auditor's part is not valid JSON
		r.log.Error("write status", zap.Error(err))
		http.Error(w, "the auditor's status is not valid JSON: see dpwatch's log", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(append(text, '\n'))
}

func (r *Relay) statusJSON() ([]byte, error) {
	all := enginesStatus{Version: Version, Proxy: r.stats()}
	for _, e := range r.engines {
		text, err := e.statusJSON()
		if err != nil {
			return nil, err
		}
		all.Engines = append(all.Engines, text)
	}
	return json.Marshal(all)
}

func (e *auditedEngine) statusJSON() ([]byte, error) {
	audit := json.RawMessage(e.supervisor.Status())
	if audit == nil {
		audit = json.RawMessage("null")
	}
	return json.Marshal(relayStatus{Version, e.name(), e.stats(), e.routeStatus(), e.queue.Stats(), e.supervisor.Stats(), audit, e.supervisor.Paused()})
}
