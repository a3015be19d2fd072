package alert

import "go.uber.org/zap"

// condition logs the beginning or the end of a condition of the auditor itself.
func (s *Sender) condition(f Finding) {
	fields := []zap.Field{zap.String("dp.finding.kind", f.kind()), zap.String("dp.component", f.Component), zap.String("dp.reason", f.Reason)}
	if f.Over {
		s.log.Info("over: "+f.Condition, fields...)
		return
	}
	s.log.Error(f.Condition, fields...)
}
