package audit

import (
	"context"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/dpwatch/dpwatch/internal/audit/desk"
	"github.com/dpwatch/dpwatch/internal/audit/environment"
	"github.com/dpwatch/dpwatch/internal/audit/fleet"
	"github.com/dpwatch/dpwatch/internal/audit/keep"
	"github.com/dpwatch/dpwatch/internal/audit/view"
	"github.com/dpwatch/dpwatch/internal/pg/engine"
)

// surroundings reads the copies, the engines and the catalogs, and reports to the desk what has changed.
type surroundings struct {
	opt      *Options
	use      useDesk
	stages   *fleet.Stages
	keeper   *keep.Keeper
	deployed chan struct{} // the engines are to be read now; capacity 1

	mu         sync.Mutex // guards the fields below
	unsaved    bool       // the label was posted and is not in the ledger yet
	production string     // why production could not be read the last time; "" = it was read
	catalog    string     // why a catalog could not be read the last time; "" = all were read
	shadow     string     // why the shadow database cannot be used; "" = it can, or is not known
	warnings   []string   // about the shadow database
}

// run reads the copies and the engines periodically, so that a query that is run again is audited on new ones.
func (s *surroundings) run(ctx context.Context) {
	tick := time.NewTicker(s.opt.EpochEvery)
	defer tick.Stop()
	for {
		_ = s.stages.Environment.ReadCopies(ctx) // checkShadow and the audits report errors
		s.watchEngine(ctx)
		select {
		case <-ctx.Done():
			return
		case <-s.deployed:
		case <-tick.C:
		}
	}
}

// environmentChanged takes another reading of the copies or the engine. The decided audits that a change of the engine
// concerns begin again; running ones notice it in their turns.
func (s *surroundings) environmentChanged(before, after *environment.Environment) {
	if before.Copies != after.Copies && before.Copies != "" {
		s.stages.Slots.Clear() // its tables are computed from the old copies
		s.opt.Logger.Info("the copies were replaced: undecided audits start again now, decided ones when their query is run again")
	}
	if before.Shadow == after.Shadow {
		return
	}
	s.stages.Catalogs.Need(after.ShadowRead)
	if before.Shadow == nil {
		return
	}
	s.stages.Slots.Clear() // its tables may be computed by the old functions
	s.use(func(d *desk.Desk) { d.Engines.Changed(before, after) })
}

// watchEngine reads both engines, and begins the decided audits again that a change concerns. The audits report errors.
func (s *surroundings) watchEngine(ctx context.Context) {
	s.storeLabel(ctx)
	_ = s.stages.Environment.ReadEngine(ctx)
	s.productionNow(ctx)
	s.use(func(d *desk.Desk) { d.Engines.Review() })
}

// readSoon makes run read both engines now.
func (s *surroundings) readSoon() {
	select {
	case s.deployed <- struct{}{}:
	default:
	}
}

// productionNow reads the functions of the clients' engine. An error is logged when it changes; the last reading then
// stays.
func (s *surroundings) productionNow(ctx context.Context) {
	if s.opt.Production == nil {
		return
	}
	err := s.stages.Environment.ReadProduction(ctx)
	if ctx.Err() != nil {
		return
	}
	s.report(&s.production, err, "production's functions cannot be read: whether the shadow database runs the same ones is not known")
}

// comparison returns whether the shadow database is like production.
func (s *surroundings) comparison() *view.Production {
	s.mu.Lock()
	trouble := s.production
	s.mu.Unlock()
	switch now := s.stages.Environment.Now(); {
	case s.opt.Production == nil:
		return &view.Production{Why: "privacy.catalog is not set, or the engine is beside the database"}
	case trouble != "":
		return &view.Production{Why: trouble}
	case now.Production == nil || now.Shadow == nil:
		return &view.Production{Why: "the databases are not read yet"}
	default:
		return &view.Production{Compared: true, Differences: engine.UnlikeForAnyone(now.Production, now.Shadow)}
	}
}

// reportCatalog shows an error in the status, and logs it when it changes.
func (s *surroundings) reportCatalog(err error) {
	s.report(&s.catalog, err, "a catalog cannot be read: queries are rewritten with the last catalog read, and audits list their assumptions")
}

// report keeps the text of an error for the status, "" for none, and logs it with a message when it changes.
func (s *surroundings) report(last *string, err error, message string) {
	text := ""
	if err != nil {
		text = s.opt.say(err)
	}
	s.mu.Lock()
	before := *last
	*last = text
	s.mu.Unlock()
	if text != "" && text != before {
		s.opt.Logger.Warn(message, zap.String("error", text))
	}
}

// shadowChecked takes the result of a check of the shadow database.
func (s *surroundings) shadowChecked(warnings []string, fault string) {
	s.mu.Lock()
	s.shadow, s.warnings = fault, warnings
	s.mu.Unlock()
	s.use(func(d *desk.Desk) { d.ShadowChecked(fault == "") })
}

// deploy takes the label of another version of the engine.
func (s *surroundings) deploy(label string) {
	s.use(func(d *desk.Desk) { // which sees the label and the change together
		s.mu.Lock()
		defer s.mu.Unlock()
		s.stages.Environment.SetLabel(label)
		s.unsaved = true
		d.Engines.Deployed(label)
	})
	s.readSoon()
}

// storeLabel writes a posted label to the ledger, unless it was written; a failure is retried with the next check of
// the engine.
func (s *surroundings) storeLabel(ctx context.Context) {
	s.mu.Lock()
	label, unsaved := s.stages.Environment.Now().Label, s.unsaved
	s.mu.Unlock()
	store := s.keeper.Writer()
	if store == nil || !unsaved {
		return
	}
	err := store.SetLabel(ctx, label)
	s.mu.Lock()
	s.unsaved = err != nil || s.stages.Environment.Now().Label != label
	s.mu.Unlock()
}

// recallLabel reads the label of the last deploy from the ledger, unless another one was posted since. It reports
// whether it is another one than before.
func (s *surroundings) recallLabel(ctx context.Context) (changed bool, err error) {
	label, err := s.keeper.Engine.Load().Label(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	if err == nil && !s.unsaved {
		changed = s.stages.Environment.SetLabel(label)
	}
	return changed, err
}

// trouble returns why a catalog and the shadow database cannot be used, and what is to be known of the latter.
func (s *surroundings) trouble() (catalog, shadow string, warnings []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.catalog, s.shadow, s.warnings
}
