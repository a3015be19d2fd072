package capture

import (
	"strings"
	"time"

	"github.com/dpwatch/dpwatch/internal/pg/ident"
	"github.com/dpwatch/dpwatch/internal/sqltext"
)

// Names is what the auditor knows of the names in an engine's statements: without schemas, as the server stores them.
type Names struct {
	// Reaching are the relations, functions, types and operators through which a statement may reach a protected table;
	// nil = every statement may reach one.
	Reaching []string
	// Known are all names of the catalog; nil = they are not known, and only Reaching decides.
	Known []string
}

// Vocabulary is a frame from the auditor to the relay: the names of the catalogs, if they have changed, and when their
// last reading began.
type Vocabulary struct {
	Names *Names
	Read  time.Time
}

// Sight is what the words of a statement show.
type Sight uint8

// What the words show, in the order in which a statement matters.
const (
	Nameless Sight = iota // it names nothing that it runs
	Harmless              // every name is known and reaches nothing protected
	Unknown               // it has an unknown name, or changes what names mean
	Reaching              // it has a name that may reach something protected
)

// Filter decides by the words of a statement whether it may reach something protected. It does not change.
type Filter struct {
	mentions  func(sql string) bool // of all names but operators
	operators map[string]bool       // that reach something
	known     map[string]bool       // nil = not known
}

// NewFilter returns the filter for some names.
func NewFilter(n Names) *Filter {
	f := &Filter{operators: map[string]bool{}}
	words := make([]string, 0, len(n.Reaching))
	for _, name := range n.Reaching {
		if ident.IsOperator(name) {
			f.operators[name] = true
		} else {
			words = append(words, name)
		}
	}
	f.mentions = func(string) bool { return false }
	if n.Reaching == nil || len(words) > 0 {
		f.mentions = Mentions(words)
	}
	if n.Known != nil {
		f.known = make(map[string]bool, len(n.Known))
		for _, name := range n.Known {
			f.known[name] = true
		}
	}
	return f
}

// Sight returns what the words of a text show, which may hold several statements. It allocates nothing.
func (f *Filter) Sight(sql string) Sight {
	if f.mentions(sql) {
		return Reaching
	}
	if f.known == nil && len(f.operators) == 0 {
		return Harmless
	}
	sight := Nameless
	r := sqltext.NewNameReader(sql)
	for n, ok := r.Next(); ok; n, ok = r.Next() {
		switch {
		case f.operators[n.Text] && ident.IsOperator(n.Text):
			return Reaching
		case sight < Unknown && !f.knows(n):
			sight = Unknown
		case sight < Harmless:
			sight = Harmless
		}
	}
	if f.known != nil && (r.Unsure || r.Defines) {
		return Unknown
	}
	return sight
}

// UnknownNames returns the names in a text that are not known, as the server reads them.
func (f *Filter) UnknownNames(sql string) (names []string) {
	r := sqltext.NewNameReader(sql)
	for n, ok := r.Next(); ok; n, ok = r.Next() {
		if !f.knows(n) {
			text := strings.ReplaceAll(n.Text, `""`, `"`)
			if !n.Quoted {
				text = ident.Fold(n.Text)
			}
			names = append(names, text)
		}
	}
	return names
}

// knows reports whether a name is known.
func (f *Filter) knows(n sqltext.Name) bool {
	if f.known == nil {
		return true
	}
	if n.Temp || len(n.Text) > ident.MaxBytes {
		return false
	}
	if n.Quoted {
		if strings.Contains(n.Text, `""`) {
			return f.known[strings.ReplaceAll(n.Text, `""`, `"`)]
		}
		return f.known[n.Text]
	}
	var folded [ident.MaxBytes]byte
	for i := range len(n.Text) {
		folded[i] = lower(n.Text[i])
	}
	return f.known[string(folded[:len(n.Text)])]
}
