package stages

import (
	"context"
	"time"

	"github.com/dpwatch/dpwatch/config"
	"github.com/dpwatch/dpwatch/internal/audit"
	"github.com/dpwatch/dpwatch/internal/pg/body"
	"github.com/dpwatch/dpwatch/internal/pg/engine"
	"github.com/dpwatch/dpwatch/rewrite"
)

// engineReader reads the version of an engine.
type engineReader interface {
	Read(ctx context.Context) (*engine.Snapshot, error)
	Close()
}

// EngineReaders returns the readers of the engine on which trials run, and of the one of the clients; nil = it cannot
// be read.
func EngineReaders(c config.Config) (shadow, production engineReader) {
	limits := body.Limits{Bytes: int(c.Proxy.MaxStatement), Tokens: rewrite.DefaultMaxTokens}
	switch {
	case c.Shadow.Engine.Version != "":
		q := &engine.Question{SQL: c.Shadow.Engine.Version, Timeout: time.Duration(c.Shadow.StatementTimeout), Extended: c.Shadow.Engine.Protocol == "extended"}
		if q.DSNs = c.Shadow.Engines(c.Shadow.Copies()); len(q.DSNs) == 0 {
			q.DSNs = []string{c.Shadow.DSN.Reveal()}
		}
		return q, nil
	case c.Shadow.Beside():
		return nil, nil
	}
	if c.Privacy.Catalog != "" {
		production = engine.NewReader(c.Privacy.Catalog.Reveal(), ConnectTimeout, limits)
	}
	return engine.NewReader(c.Shadow.DSN.Reveal(), ConnectTimeout, limits), production
}

// Unlike returns how the shadow database differs from production for a statement: see engine.Unlike. It reads both.
func Unlike(ctx context.Context, c config.Config, user string, replayed map[string]string) ([]string, error) {
	shadow, production := EngineReaders(c)
	if production == nil {
		return nil, nil
	}
	defer shadow.Close()
	defer production.Close()
	there, err := production.Read(ctx)
	if err != nil {
		return nil, err
	}
	here, err := shadow.Read(ctx)
	return engine.Unlike(there, here, user, replayed), err
}

// SetEngines adds the readers of the engines to the options of the auditor.
func SetEngines(o *audit.Options, c config.Config) {
	shadow, production := EngineReaders(c)
	if shadow != nil {
		o.Engine = shadow.Read
	}
	if production != nil {
		o.Production = production.Read
	}
}
