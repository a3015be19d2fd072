package config

import (
	"fmt"
	"strconv"
	"strings"
	"time"
	_ "time/tzdata" // the names of time zones, where the machine has none
)

// Window is a time of the day by the wall clock of a place, written 22:00-06:00 Europe/Berlin; without a place, UTC.
// One that ends before it begins goes past midnight.
type Window struct {
	From, To int // minutes since midnight; To is not in it
	Zone     *time.Location
}

// String returns the form that the file takes.
func (w Window) String() string {
	return fmt.Sprintf("%02d:%02d-%02d:%02d %s", w.From/60, w.From%60, w.To/60, w.To%60, w.Zone)
}

// MarshalYAML writes String's form.
func (w Window) MarshalYAML() ([]byte, error) { return []byte(strconv.Quote(w.String())), nil }

func (w *Window) set(text string) error {
	wrong := fmt.Errorf("%q is not a time of the day: write 22:00-06:00 Europe/Berlin", text)
	hours, zone, _ := strings.Cut(strings.TrimSpace(text), " ")
	from, to, ok := strings.Cut(hours, "-")
	if !ok {
		return wrong
	}
	for _, end := range []struct {
		text string
		into *int
	}{{from, &w.From}, {to, &w.To}} {
		at, err := time.Parse("15:04", end.text)
		if err != nil {
			return wrong
		}
		*end.into = at.Hour()*60 + at.Minute()
	}
	if w.From == w.To {
		return fmt.Errorf("%q is empty: leave audit.windows out for the whole day", text)
	}
	place, err := time.LoadLocation(strings.TrimSpace(zone))
	if err != nil {
		return fmt.Errorf("%q is not a time zone that is known: write Europe/Berlin or UTC", strings.TrimSpace(zone))
	}
	w.Zone = place
	return nil
}
