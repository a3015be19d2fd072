package throttle

import "time"

// Window is a time of day in a time zone. A window that ends before it begins spans midnight.
type Window struct {
	From, To int // minutes since midnight; To is excluded
	Zone     *time.Location
}

// open reports whether one of the windows contains the moment; none = always.
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
