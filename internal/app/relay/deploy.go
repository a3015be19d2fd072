package relay

import (
	"errors"
	"net/http"
	"strings"

	"go.uber.org/zap"
)

// maxLabel bounds the label of a deploy, in bytes.
const maxLabel = 100

// deploy handles POST /api/engine: another version of the engine was deployed, under the label of the form. Its field
// engine names the one of several engines.
func (r *Relay) deploy(w http.ResponseWriter, req *http.Request) {
	if err := r.Deploy(req.FormValue("engine"), req.FormValue("label")); err != nil {
		http.Error(w, "dpwatch: "+err.Error(), http.StatusBadRequest)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

// Deploy makes the auditor of an engine audit all queries again: another version of the engine was deployed, under a
// label. "" is the only engine.
func (r *Relay) Deploy(engine, label string) error {
	if label == "" || len(label) > maxLabel || strings.ContainsFunc(label, func(c rune) bool { return c <= ' ' || c > '~' }) {
		return errors.New("give the version that was deployed as label=...: 1 to 100 printable ASCII characters without spaces")
	}
	e, err := r.engine(engine)
	if err != nil {
		return err
	}
	r.log.Info("a deploy of the engine was posted", zap.String("label", label), zap.String("engine", e.name()))
	e.supervisor.Deploy(label)
	return nil
}
