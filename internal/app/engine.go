package app

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/dpwatch/dpwatch/config"
	"github.com/dpwatch/dpwatch/internal/audit"
	"github.com/dpwatch/dpwatch/internal/pg/body"
	"github.com/dpwatch/dpwatch/internal/pg/engine"
	"github.com/dpwatch/dpwatch/internal/preflight"
)

// engineReader reads the version of an engine.
type engineReader interface {
	Read(ctx context.Context) (*engine.Snapshot, error)
	Close()
}

// engineReaders returns the readers of the engine on which trials run, and of the one of the clients; nil = it cannot be read.
func engineReaders(c config.Config) (shadow, production engineReader) {
	limits := body.Limits{Bytes: int(c.Proxy.MaxStatement), Tokens: c.Audit.MaxTokens}
	timeout := time.Duration(c.Shadow.ConnectTimeout)
	switch {
	case c.Shadow.EngineVersion != "":
		q := &engine.Question{SQL: c.Shadow.EngineVersion, Timeout: time.Duration(c.Shadow.StatementTimeout), Extended: c.Shadow.Protocol == "extended"}
		if q.DSNs = c.Shadow.Engines(c.Shadow.Copies()); len(q.DSNs) == 0 {
			q.DSNs = []string{c.Shadow.DSN.Reveal()}
		}
		return q, nil
	case c.Shadow.Beside():
		return nil, nil
	}
	if c.Privacy.Catalog != "" {
		production = engine.NewReader(c.Privacy.Catalog.Reveal(), timeout, limits)
	}
	return engine.NewReader(c.Shadow.DSN.Reveal(), timeout, limits), production
}

// setEngines adds the readers of the engines to the options of the auditor.
func setEngines(o *audit.Options, c config.Config) {
	shadow, production := engineReaders(c)
	if shadow != nil {
		o.Engine = shadow.Read
	}
	if production != nil {
		o.Production = production.Read
	}
}

// checkVersion checks that the version of the engine can be read, and that the shadow database has production's DP functions.
func checkVersion(c config.Config) preflight.Task {
	return func(ctx context.Context) []preflight.Check {
		shadow, production := engineReaders(c)
		if shadow == nil {
			return []preflight.Check{{
				Name: "shadow.engine_version", Object: "the engine beside the database", Status: preflight.Unchecked,
				Message: "not configured: a new version of the engine goes unnoticed unless it is posted to the admin port", Fix: "set shadow.engine_version, or POST /api/engine with each deploy",
			}}
		}
		defer shadow.Close()
		ours, err := shadow.Read(ctx)
		if c.Shadow.EngineVersion != "" {
			check := preflight.Check{Name: "shadow.engine_version", Object: "the engine's answer", Status: preflight.OK, Message: "is one row"}
			if err != nil {
				check.Status, check.Message, check.Fix = preflight.Fault, err.Error(), "correct the query: audits wait until the engine answers it"
			}
			return []preflight.Check{check}
		}
		if production == nil || err != nil {
			return nil // the checks of shadow.dsn and privacy.catalog report it
		}
		defer production.Close()
		theirs, err := production.Read(ctx)
		if err != nil {
			return nil
		}
		return compareFunctions(c, theirs, ours)
	}
}

// compareFunctions reports the DP functions, and functions that they call, of which production has another definition than the shadow database.
func compareFunctions(c config.Config, production, shadow *engine.Snapshot) []preflight.Check {
	calls := engine.Calls{Path: slices.Concat(c.Privacy.SearchPath, c.Shadow.SearchPath, []string{"public"})}
	for _, f := range c.Claims.Functions {
		calls.Functions = append(calls.Functions, f.Name)
	}
	var checks []preflight.Check
	for _, name := range engine.Differ(production, shadow, calls, c.Shadow.Copies()) {
		checks = append(checks, preflight.Check{
			Name: "claims.functions", Object: name, Status: preflight.Warning,
			Message: "the shadow database has another definition than production: audits of queries that call it are inconclusive", Fix: "install production's definition in the shadow database",
		})
	}
	return checks
}

// maxLabel bounds the label of a deploy, in bytes.
const maxLabel = 100

// deploy handles POST /api/engine: another version of the engine was deployed, under the label of the form. Its field engine names
// the one of several engines.
func (r *Relay) deploy(w http.ResponseWriter, req *http.Request) {
	if err := r.Deploy(req.FormValue("engine"), req.FormValue("label")); err != nil {
		http.Error(w, "dpwatch: "+err.Error(), http.StatusBadRequest)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

// Deploy makes the auditor of an engine audit all queries again: another version of the engine was deployed, under a label. "" is the only engine.
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
