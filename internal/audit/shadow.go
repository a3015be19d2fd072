package audit

import (
	"context"
	"time"

	"go.uber.org/zap"
)

// checkShadow checks the shadow database until a check succeeds, logs the faults and passes every result on.
func checkShadow(ctx context.Context, o *Options, checked func(warnings []string, fault string)) {
	last := ""
	for {
		warnings, err := o.Player.Check(ctx, o.D0, o.D1, o.Tables)
		if ctx.Err() != nil {
			return
		}
		text := ""
		if err != nil {
			text = o.say(err)
		}
		checked(warnings, text)
		if err == nil {
			for _, w := range warnings {
				o.Logger.Warn("shadow database", zap.String("warning", w))
			}
			return
		}
		if text != last {
			o.Logger.Error("the shadow database is not ready for replays: audits wait, traffic is not affected", zap.String("error", text))
			last = text
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(o.RetryAfter):
		}
	}
}
