// Package fleet has the turns of audits run: in this process, and by workers on other machines, to which it gives them
// through the ledger. It does what the beginning and the end of a turn need of databases.
package fleet

import (
	"time"

	"go.uber.org/zap"

	"github.com/dpwatch/dpwatch/internal/audit/budget"
	"github.com/dpwatch/dpwatch/internal/audit/desk"
	"github.com/dpwatch/dpwatch/internal/audit/environment"
	"github.com/dpwatch/dpwatch/internal/audit/guard"
	"github.com/dpwatch/dpwatch/internal/audit/keep"
	"github.com/dpwatch/dpwatch/internal/audit/recognize"
	"github.com/dpwatch/dpwatch/internal/audit/step"
	"github.com/dpwatch/dpwatch/internal/capture"
	"github.com/dpwatch/dpwatch/replay/throttle"
)

// Stages are what an auditor and a worker have in common.
type Stages struct {
	Recognizer  *recognize.Recognizer
	Environment *environment.Reader
	Catalogs    *environment.Catalogs
	Texts       step.Texts
	Slots       *step.Slots
}

// Options configures a Fleet.
type Options struct {
	Stages
	Use    func(func(*desk.Desk)) // lets one goroutine at a time use the desk
	Keeper *keep.Keeper
	Guard  *guard.Guard
	Wait   func() time.Duration // how long until a turn may begin, by the budget of replays; 0 = one may
	Ready  <-chan struct{}      // a turn may be due

	Renews      bool                                               // the catalogs are read again
	Key         func(q capture.Query, planKey string) (key string) // the identity of a query's audit
	Announce    func(sql string) (done func())
	Seed        func() uint64  // of the order of the trials of a watched audit
	Budget      *budget.Budget // nil = no limit
	Gate        *throttle.Gate // nil = replays are never held
	RetryAfter  time.Duration
	RescueAfter time.Duration // turns of a worker are withdrawn when it has been silent for so long
	Now         func() time.Time
	Say         func(error) string
	Logger      *zap.Logger
}

// Fleet runs turns. Its fields are who runs them.
type Fleet struct {
	Local   *Local
	Workers *Workers
	turns   *turns
}

// New returns a Fleet.
func New(opt Options) *Fleet {
	t := &turns{beginnings: beginnings{opt: &opt}}
	return &Fleet{turns: t, Local: &Local{t}, Workers: newWorkers(t)}
}
