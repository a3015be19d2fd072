package tracker

import (
	"maps"
	"slices"
	"strings"

	"github.com/dpwatch/dpwatch/internal/capture"
	"github.com/dpwatch/dpwatch/internal/sqltext"
)

// maxTemps limits the temporary relations that are tracked; with more, all names are uncertain.
const maxTemps = 1024

// maxDefinitions limits the bytes of the definitions of a session's temporary views that are kept; without its
// definition a view is not audited.
const maxDefinitions = 64 << 10

// temps tracks the temporary relations of a session, which hide others of the same name. The map is replaced, never
// changed.
type temps struct {
	names   map[string]temp // by name
	unknown bool            // more temporary relations may exist
	defined int             // the number of names with a definition
}

// temp is a temporary relation.
type temp struct {
	dropOnCommit bool // it is dropped at the end of the transaction
	// definition is set if a statement that names the relation may run declared functions or read protected tables: if
	// it is a view on them, or has expressions or triggers that name them. It is never changed.
	definition *capture.Temp
}

// after returns the temporary relations after a statement. define returns the definition that the statement gives to a
// relation, nil = none that matters.
func (t temps) after(c sqltext.TempChange, define func(name string) *capture.Temp) temps {
	names := maps.Clone(t.names)
	if names == nil {
		names = map[string]temp{}
	}
	if c.Made != "" {
		names[c.Made] = temp{c.DropOnCommit, define(c.Made)}
	}
	if c.View != "" && (len(t.names) > 0 || t.unknown) {
		names[c.View] = temp{false, define(c.View)}
	}
	if before, ok := names[c.Extended]; ok {
		added := define(c.Extended)
		if added != nil || before.definition != nil {
			names[c.Extended] = temp{before.dropOnCommit, &capture.Temp{Name: c.Extended}}
		}
	}
	for _, name := range c.Dropped {
		delete(names, name)
	}
	if renamed, ok := names[c.Old]; ok {
		delete(names, c.Old)
		if d := renamed.definition; d != nil {
			renamed.definition = &capture.Temp{Name: c.New, View: d.View, Settings: d.Settings, Doubt: d.Doubt}
		}
		names[c.New] = renamed
	}
	if len(names) > maxTemps {
		return temps{unknown: true}
	}
	return temps{names, t.unknown, countDefined(names)}
}

func countDefined(names map[string]temp) (n int) {
	for _, t := range names {
		if t.definition != nil {
			n++
		}
	}
	return n
}

// committed returns the temporary relations after the end of the transaction.
func (t temps) committed() temps {
	for _, relation := range t.names {
		if !relation.dropOnCommit {
			continue
		}
		names := maps.Clone(t.names)
		maps.DeleteFunc(names, func(_ string, relation temp) bool { return relation.dropOnCommit })
		return temps{names, t.unknown, countDefined(names)}
	}
	return t
}

func (t temps) same(other temps) bool {
	return t.unknown == other.unknown && maps.Equal(t.names, other.names)
}

// size returns the bytes of the definitions.
func (t temps) size() (n int) {
	for _, relation := range t.names {
		if relation.definition != nil {
			n += len(relation.definition.View)
		}
	}
	return n
}

// matter reports whether a statement names a relation that has a definition.
func (t temps) matter(sql string) bool {
	if t.defined == 0 {
		return false
	}
	for _, name := range t.in(sql) {
		if t.names[name].definition != nil {
			return true
		}
	}
	return false
}

// mayMatter reports whether a statement names something that matters, a temporary relation that does, or a temporary
// object that is not tracked. matters is Config.MaybeProtected; nil = every statement does.
func (t temps) mayMatter(matters func(sql string) bool, sql string) bool {
	return matters == nil || matters(sql) || t.matter(sql) || sqltext.NamesTempSchema(sql)
}

// in returns the names that occur as words anywhere in a statement, ignoring case.
func (t temps) in(sql string) (named []string) {
	if len(t.names) == 0 {
		return nil
	}
	sql = strings.ToLower(sql)
	for name := range t.names {
		if holdsWord(sql, strings.ReplaceAll(strings.ToLower(name), `"`, `""`)) {
			named = append(named, name)
		}
	}
	return named
}

// namedIn returns the names that occur as words anywhere in a statement, or in the definitions of views among them, and
// the definitions; both sorted.
func (t temps) namedIn(sql string) (named []string, definitions []capture.Temp) {
	found := map[string]bool{}
	for texts := []string{sql}; len(texts) > 0; {
		sql, texts = texts[0], texts[1:]
		for _, name := range t.in(sql) {
			if found[name] {
				continue
			}
			found[name] = true
			if d := t.names[name].definition; d != nil {
				definitions = append(definitions, *d)
				texts = append(texts, d.View)
			}
		}
	}
	if len(found) == 0 {
		return nil, nil
	}
	slices.SortFunc(definitions, func(a, b capture.Temp) int { return strings.Compare(a.Name, b.Name) })
	return slices.Sorted(maps.Keys(found)), definitions
}

// holdsWord reports whether text contains word as a whole word.
func holdsWord(text, word string) bool {
	for from := 0; ; {
		i := strings.Index(text[from:], word)
		if i < 0 {
			return false
		}
		start, end := from+i, from+i+len(word)
		if (start == 0 || !wordByte(text[start-1])) && (end == len(text) || !wordByte(text[end])) {
			return true
		}
		from = start + 1
	}
}

func wordByte(c byte) bool {
	return c == '_' || c == '$' || c >= 0x80 || '0' <= c && c <= '9' || 'a' <= c && c <= 'z'
}
