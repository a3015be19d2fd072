package config

import (
	"fmt"
	"strconv"
	"strings"
	"time"
	_ "time/tzdata" // time zone names, if the machine has none
)

// Window is a time of the day in a time zone, written 22:00-06:00 Europe/Berlin; the default zone is UTC. A window that
// ends before it begins continues past midnight.
type Window struct {
	From, To int // minutes since midnight; To is excluded
	Zone     *time.Location
}

// String returns the form used in the file.
func (w Window) String() string {
	return fmt.Sprintf("%02d:%02d-%02d:%02d %s", w.From/60, w.From%60, w.To/60, w.To%60, w.Zone)
}

// MarshalYAML returns String's form, quoted.
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
		return fmt.Errorf("%q is empty: omit audit.windows for the whole day", text)
	}
	place, err := time.LoadLocation(strings.TrimSpace(zone))
	if err != nil {
		return fmt.Errorf("%q is not a known time zone: write Europe/Berlin or UTC", strings.TrimSpace(zone))
	}
	w.Zone = place
	return nil
}
