package tracker

import (
	"maps"
	"slices"
	"strings"

	"github.com/dpwatch/dpwatch/internal/sqltext"
)

// maxTemps limits the temporary relations that are tracked; with more, all names are uncertain.
const maxTemps = 1024

// temps tracks the temporary relations of a session, which hide others of the same name. The map is replaced, never
// changed.
type temps struct {
	names   map[string]bool // by name; true = dropped at the end of the transaction
	unknown bool            // more temporary relations may exist
}

// after returns the temporary relations after a statement.
func (t temps) after(c sqltext.TempChange) temps {
	names := maps.Clone(t.names)
	if names == nil {
		names = map[string]bool{}
	}
	if c.Made != "" {
		names[c.Made] = c.DropOnCommit
	}
	if c.View != "" && (len(t.names) > 0 || t.unknown) {
		names[c.View] = false
	}
	for _, name := range c.Dropped {
		delete(names, name)
	}
	if onCommit, ok := names[c.Old]; ok {
		delete(names, c.Old)
		names[c.New] = onCommit
	}
	if len(names) > maxTemps {
		return temps{unknown: true}
	}
	return temps{names: names, unknown: t.unknown}
}

// committed returns the temporary relations after the end of the transaction.
func (t temps) committed() temps {
	for _, onCommit := range t.names {
		if !onCommit {
			continue
		}
		names := maps.Clone(t.names)
		maps.DeleteFunc(names, func(_ string, onCommit bool) bool { return onCommit })
		return temps{names: names, unknown: t.unknown}
	}
	return t
}

func (t temps) same(other temps) bool {
	return t.unknown == other.unknown && maps.Equal(t.names, other.names)
}

// namedIn returns the names that occur as words anywhere in a statement, ignoring case; sorted.
func (t temps) namedIn(sql string) []string {
	if len(t.names) == 0 {
		return nil
	}
	sql = strings.ToLower(sql)
	var named []string
	for name := range t.names {
		if holdsWord(sql, strings.ReplaceAll(strings.ToLower(name), `"`, `""`)) {
			named = append(named, name)
		}
	}
	slices.Sort(named)
	return named
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
