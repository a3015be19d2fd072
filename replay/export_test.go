package replay

import "time"

// ForceHoisting hoists wherever it is possible, whether it is faster or not.
func ForceHoisting() *Hoisting {
	h := NewHoisting(nil)
	h.always = true
	return h
}

// TimedHoisting tells the time by a clock of the test's.
func TimedHoisting(now func() time.Time) *Hoisting {
	h := NewHoisting(nil)
	h.now = now
	return h
}

// Compare compares two samples of equal size as an audit's first look does, and says in what they differ, or "".
func Compare(unmodified, hoisted []Round) string {
	p := proof{first: len(unmodified)}
	p.add(unmodified, false)
	p.add(hoisted, true)
	what, _ := p.look()
	return what
}
