package audit

import (
	"context"
	"time"

	"go.uber.org/zap"

	"github.com/dpwatch/dpwatch/analysis"
	"github.com/dpwatch/dpwatch/internal/audit/view"
)

// summaryEvery is the interval of the summaries in the log.
const summaryEvery = time.Minute

// summarize logs a line about the auditor's work at every interval.
func (s *statuses) summarize(ctx context.Context, every time.Duration) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			s.opt.Logger.Info("summary", summary(s.now())...)
		}
	}
}

// summary returns the numbers of a summary: what happened since the start, and the present state.
func summary(s view.Status) []zap.Field {
	states, violations, skipped := map[view.State]int{}, len(s.Records), uint64(0)
	for i := range s.Audits {
		states[s.Audits[i].State]++
		if s.Audits[i].Verdict == string(analysis.Violation) {
			violations++
		}
	}
	for _, n := range s.Skipped {
		skipped += n
	}
	fields := []zap.Field{zap.Uint64("captured", s.Captured), zap.Uint64("skipped", skipped), zap.Uint64("replay_faults", s.Faults)}
	if s.Withheld() != "" { // the numbers of audits are not known yet
		fields = append(fields, zap.String("audits", s.Withheld()))
	} else {
		fields = append(fields, zap.Int("violations", violations), zap.Any("audits", states))
		if share := s.Coverage.AuditedQueries; share != nil {
			fields = append(fields, zap.Float64("audited_query_share", *share))
		}
	}
	if s.Ledger != nil {
		fields = append(fields, zap.Bool("ledger_up", (s.Ledger.Restored || s.Ledger.Holder != nil) && s.Ledger.Trouble == ""), zap.Int("unsaved_audits", s.Ledger.Unsaved))
	}
	return fields
}
