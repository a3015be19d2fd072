package alert

import (
	"time"

	"go.uber.org/zap"
)

// Budget is what an analyst received, by the claims of the answers, beside what the engine promises.
type Budget struct {
	Name                        string
	User, Database, Application string // the analyst; Application is empty where all count together
	Answers                     int64
	Epsilon, Delta              float64 // the budget
	Spent                       float64 // epsilon of all answers together, at Delta; +Inf if none holds
	Composition                 string
	Period                      time.Duration // 0 = ever
}

// valid returns b with names that PostgreSQL stores as text.
func (b Budget) valid() Budget {
	b.User, b.Database, b.Application = valid(b.User), valid(b.Database), valid(b.Application)
	return b
}

func (b Budget) fields() []zap.Field {
	fields := []zap.Field{
		zap.String("dp.budget.name", b.Name),
		zap.String("db.user", b.User), zap.String("db.namespace", b.Database),
		zap.Int64("dp.budget.answers", b.Answers), zap.Float64("dp.budget.epsilon", b.Epsilon), zap.Float64("dp.delta", b.Delta),
		zap.Float64("dp.budget.spent", b.Spent), zap.String("dp.budget.composition", b.Composition), zap.Duration("dp.budget.period", b.Period),
	}
	if b.Application != "" {
		fields = append(fields, zap.String("db.application", b.Application))
	}
	return fields
}
