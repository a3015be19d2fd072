package throttle

import "time"

// Window is a time of the day, by the wall clock of a place. One that ends before it begins goes past midnight.
type Window struct {
	From, To int // minutes since midnight; To is not in it
	Zone     *time.Location
}

// open reports whether one of the windows holds the moment; none = always.
func open(windows []Window, now time.Time) bool {
	for _, w := range windows {
		local := now.In(w.Zone)
		minute := local.Hour()*60 + local.Minute()
		if w.From <= w.To && w.From <= minute && minute < w.To || w.From > w.To && (minute >= w.From || minute < w.To) {
			return true
		}
	}
	return len(windows) == 0
}
