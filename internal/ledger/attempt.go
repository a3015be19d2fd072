package ledger

import (
	"fmt"
	"os"
	"path/filepath"
)

// attempt is the part of a spooled file that a process used last.
type attempt struct {
	name  string
	part  int
	times int
}

// Attempt notes on disk that a part of a file is about to be used, and returns how often it was: after a crash in
// between, the next process sees it. Parts before one that an earlier process noted are not noted again.
func (s *Spool) Attempt(name string, part int) (times int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.attempts == nil {
		file, err := os.OpenFile(filepath.Join(s.dir, "attempt"), os.O_CREATE|os.O_RDWR, 0o600)
		if err != nil {
			return 1
		}
		s.attempts = file
		if _, err := fmt.Fscan(file, &s.latest.name, &s.latest.part, &s.latest.times); err != nil {
			s.latest = attempt{}
		}
	}
	switch l := &s.latest; {
	case name == l.name && part < l.part:
		return 1
	case name == l.name && part == l.part:
		l.times++
	default:
		*l = attempt{name, part, 1}
	}
	_, _ = s.attempts.WriteAt(fmt.Appendf(nil, "%s %d %d\n", s.latest.name, s.latest.part, s.latest.times), 0) // without it, a crash is noticed one attempt later
	return s.latest.times
}
