package ledger

import (
	"time"

	"github.com/dpwatch/dpwatch/internal/odometer"
)

// PrivacyBudget is what the engine promises about all answers to one analyst.
type PrivacyBudget struct {
	Name    string
	Answers               // the answers that count; Since is not used
	Period  time.Duration // after which an answer does not count any more; 0 = it always counts
	odometer.Budget
}

// Window returns the answers that count at a time: a part of an hour at the beginning of the period does not.
func (b *PrivacyBudget) Window(now time.Time) Answers {
	w := b.Answers
	if b.Period > 0 {
		w.Since = now.Add(-b.Period)
	}
	return w
}
