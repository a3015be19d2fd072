package textnumber

import (
	"math"
	"strconv"
	"strings"
	"time"
)

var epoch = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

// dayOf parses YYYY-MM-DD, also with more than four digits of a year, and returns the days since the epoch and the
// remaining text.
func dayOf(s string) (days int, rest string, ok bool) {
	y := digitsAt(s, 0)
	if y < 4 || y > 6 || len(s) < y+6 || s[y] != '-' || digitsAt(s, y+1) != y+3 || s[y+3] != '-' || digitsAt(s, y+4) != y+6 {
		return 0, "", false
	}
	year, _ := strconv.Atoi(s[:y])
	month, _ := strconv.Atoi(s[y+1 : y+3])
	day, _ := strconv.Atoi(s[y+4 : y+6])
	t := time.Date(year, time.Month(month), day, 0, 0, 0, 0, time.UTC)
	if t.Day() != day || int(t.Month()) != month {
		return 0, "", false
	}
	return int((t.Unix() - epoch.Unix()) / 86400), s[y+6:], true
}

func scanDate(s string) (n number, ok bool) {
	days, rest, ok := dayOf(s)
	n.value = float64(days)
	return n, ok && rest == ""
}

// scanInstant parses a date and a time of day, with or without an offset from UTC.
func scanInstant(s string) (n number, ok bool) {
	days, rest, ok := dayOf(s)
	if !ok || rest == "" || rest[0] != ' ' && rest[0] != 'T' {
		return n, false
	}
	clock := rest[1:]
	offset := 0.0
	if i := strings.IndexAny(clock, "+-Z"); i >= 0 {
		if offset, ok = offsetOf(clock[i:]); !ok {
			return n, false
		}
		clock = clock[:i]
	}
	if n, ok = clockOf(clock); !ok || n.value >= 86401 {
		return n, false
	}
	n.value += float64(days)*86400 - offset
	return n, true
}

// offsetOf parses an offset from UTC in seconds: Z, +02, -03:30, +01:00:00.
func offsetOf(s string) (seconds float64, ok bool) {
	if s == "Z" {
		return 0, true
	}
	unit := 3600.0
	for i, part := range strings.Split(s[1:], ":") {
		if len(part) != 2 || digitsAt(part, 0) != 2 || i > 2 {
			return 0, false
		}
		x, _ := strconv.Atoi(part)
		seconds += float64(x) * unit
		unit /= 60
	}
	if s[0] == '-' {
		seconds = -seconds
	}
	return seconds, true
}

// clockOf parses HH:MM:SS with any fraction and any number of hours, as seconds. Its decimals are those of the seconds.
func clockOf(s string) (n number, ok bool) {
	h := digitsAt(s, 0)
	if h < 2 || h > 9 || len(s) < h+6 || s[h] != ':' || digitsAt(s, h+1) != h+3 || s[h+3] != ':' || digitsAt(s, h+4) != h+6 {
		return n, false
	}
	hours, _ := strconv.Atoi(s[:h])
	minutes, _ := strconv.Atoi(s[h+1 : h+3])
	seconds, err := strconv.ParseFloat(s[h+4:], 64)
	if err != nil || minutes > 59 || seconds >= 61 {
		return n, false
	}
	if fraction := s[h+6:]; fraction != "" {
		if fraction[0] != '.' || digitsAt(fraction, 1) != len(fraction) || len(fraction) == 1 {
			return n, false
		}
		n.decimals, n.padded = len(fraction)-1, fraction[len(fraction)-1] == '0'
	}
	n.value = float64(hours)*3600 + float64(minutes)*60 + seconds
	return n, true
}

// Seconds per unit of PostgreSQL's intervals, as in EXTRACT(EPOCH).
var unitSeconds = map[string]float64{
	"year": 365.25 * 86400, "years": 365.25 * 86400, "mon": 30 * 86400, "mons": 30 * 86400, "day": 86400, "days": 86400,
}

// scanInterval parses an interval in PostgreSQL's default format: 1 year 2 mons -3 days +04:05:06.789. A time of day is
// also one.
func scanInterval(s string) (n number, ok bool) {
	fields := 0
	for rest := s; rest != ""; fields++ {
		field := rest
		if i := strings.IndexByte(rest, ' '); i >= 0 {
			field, rest = rest[:i], rest[i+1:]
		} else {
			rest = ""
		}
		if strings.IndexByte(field, ':') >= 0 { // the last field
			sign := 1.0
			if field[0] == '-' || field[0] == '+' {
				if field[0] == '-' {
					sign = -1
				}
				field = field[1:]
			}
			clock, ok := clockOf(field)
			if !ok || rest != "" {
				return n, false
			}
			n.decimals, n.padded = clock.decimals, clock.padded
			n.value += sign * clock.value
			continue
		}
		unit := rest
		if i := strings.IndexByte(rest, ' '); i >= 0 {
			unit, rest = rest[:i], rest[i+1:]
		} else {
			rest = ""
		}
		count, err := strconv.ParseInt(field, 10, 32)
		length, known := unitSeconds[unit]
		if err != nil || !known {
			return n, false
		}
		n.value += float64(count) * length
	}
	return n, fields > 0 && !math.IsInf(n.value, 0)
}
