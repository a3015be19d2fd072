package capture

import (
	"strings"
	"sync"
	"time"

	"github.com/dpwatch/dpwatch/internal/sqltext"
)

// Sample is an example of the statements that are not audited for a reason. It holds no value of a row; only Text holds
// constants and parameters of the client.
type Sample struct {
	Reason                      string
	User, Database, Application string
	Shape                       string // the statement without constants and comments; "" = not known
	Detail                      string // what was found: a function, a table, a setting, a size; "" = nothing more than the reason
	Advice                      string // what to do about this statement; "" = what the reason says
	Text                        string // the beginning of the statement as the client sent it; "" = not known or withheld
	At                          time.Time
}

// Bounds of a Sample and of Samples.
const (
	SamplesPerReason = 5
	maxSampleReasons = 64
	maxSampleShape   = 300
	maxSampleField   = 300
	maxSampleText    = 2000
)

// SampleOf returns the sample of a statement. unread means that the server may read its strings otherwise than dpwatch.
func SampleOf(reason string, q Query, unread bool) Sample {
	outline := sqltext.Outline
	if unread {
		outline = sqltext.OutlineUnread
	}
	s := Sample{Reason: reason, User: q.User, Database: q.Database, Application: q.ApplicationName, Shape: outline(q.SQL, maxSampleShape), Text: q.SQL, At: q.Completed}
	if s.At.IsZero() {
		s.At = time.Now()
	}
	return s
}

// Samples holds a few samples of each reason until Take. While it has SamplesPerReason of a reason, a sample of another
// user or application replaces one of those with the most; the first ones stay otherwise. It is safe for concurrent
// use; nil holds none.
type Samples struct {
	mu  sync.Mutex
	all map[string][]Sample
}

// Wants reports whether Add would keep a sample. It is cheap: making a sample takes as long as reading the statement
// once.
func (s *Samples) Wants(reason, user, database, application string) bool {
	if s == nil {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	_, ok := s.place(&Sample{Reason: reason, User: user, Database: database, Application: application})
	return ok
}

// place returns the index at which a sample goes; that of the length is a new one. The caller holds s.mu.
func (s *Samples) place(x *Sample) (int, bool) {
	list, known := s.all[x.Reason]
	if len(list) < SamplesPerReason {
		return len(list), known || len(s.all) < maxSampleReasons
	}
	most, at := 1, -1
	for i := range list {
		if list[i].sameClient(x) {
			return 0, false
		}
		n := 0
		for j := range list {
			if list[j].sameClient(&list[i]) {
				n++
			}
		}
		if n > most {
			most, at = n, i
		}
	}
	return at, at >= 0
}

func (s *Sample) sameClient(x *Sample) bool {
	return s.User == x.User && s.Database == x.Database && s.Application == x.Application
}

// Add adds a sample. One that is held already gets its time.
func (s *Samples) Add(x Sample) {
	if s == nil {
		return
	}
	x.bound()
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, held := range s.all[x.Reason] {
		if held.sameClient(&x) && held.Shape == x.Shape && held.Detail == x.Detail {
			s.all[x.Reason][i].At = x.At
			return
		}
	}
	i, ok := s.place(&x)
	switch {
	case !ok:
		return
	case s.all == nil:
		s.all = map[string][]Sample{}
	}
	if list := s.all[x.Reason]; i < len(list) {
		list[i] = x
	} else {
		s.all[x.Reason] = append(list, x)
	}
}

// Take removes and returns all samples.
func (s *Samples) Take() (all []Sample) {
	if s == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, list := range s.all {
		all = append(all, list...)
	}
	clear(s.all)
	return all
}

// bound bounds the memory of a sample, and replaces what the ledger does not store as text: clients choose names and
// texts in any encoding.
func (s *Sample) bound() {
	for _, field := range []struct {
		text *string
		most int
	}{
		{&s.Reason, maxSampleField},
		{&s.User, maxSampleField},
		{&s.Database, maxSampleField},
		{&s.Application, maxSampleField},
		{&s.Shape, maxSampleShape},
		{&s.Detail, maxSampleField},
		{&s.Advice, maxSampleField},
		{&s.Text, maxSampleText},
	} {
		text := strings.ReplaceAll(strings.ToValidUTF8((*field.text)[:min(len(*field.text), field.most)], ""), "\x00", "")
		*field.text = strings.Clone(text) // not a part of a long statement
	}
}
