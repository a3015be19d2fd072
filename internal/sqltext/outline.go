package sqltext

import (
	"strings"
	"unicode/utf8"
)

// Outline returns a text as people read it, in one line of at most limit bytes: without comments, constants as ?, lists
// of them as one "?, ...". It holds no constant: a quoted identifier that is no plain name is "...", because clients of
// other systems quote strings so.
func Outline(sql string, limit int) string {
	l := lexer{sql: sql}
	var out strings.Builder
	before := 0            // the end of the token before
	list, more := 0, false // list: 1 after a constant, 2 after a constant and a comma; more: "..." is written
	for t := l.next(); t.kind != end && out.Len() <= limit; t = l.next() {
		text := outlineWord(sql[t.start:t.end], t.kind)
		space := before > 0 && t.start > before
		before = t.end
		constant := text == "?"
		switch {
		case constant && list == 2:
			list = 1
			if !more {
				more = true
				out.WriteString(" ...")
			}
			continue
		case text == "," && list == 1:
			list = 2
			if more {
				continue
			}
		case constant:
			list, more = 1, false
		default:
			if list == 2 && more {
				out.WriteByte(',')
			}
			list, more = 0, false
		}
		if space && out.Len() > 0 {
			out.WriteByte(' ')
		}
		out.WriteString(text)
	}
	return cutOutline(out.String(), limit)
}

// cutOutline cuts s at the start of a character and marks the cut.
func cutOutline(s string, limit int) string {
	const mark = "..."
	if len(s) <= limit {
		return s
	}
	end := max(0, limit-len(mark))
	for end > 0 && !utf8.RuneStart(s[end]) {
		end--
	}
	return s[:end] + mark
}

// OutlineUnread is Outline for a text whose strings the lexer may read otherwise than the server, because of its
// encoding or standard_conforming_strings: it ends before the first byte that may begin a string.
func OutlineUnread(sql string, limit int) string {
	for i := range len(sql) {
		if c := sql[i]; c == '\'' || c == '"' || c == '$' || c == '\\' || c >= 0x80 {
			return Outline(sql[:i], limit-4) + " ..."
		}
	}
	return Outline(sql, limit)
}

func outlineWord(text string, k kind) string {
	switch k {
	case str, number:
		return "?"
	case escaped:
		if text[len(text)-1] == '\'' {
			return "?"
		}
		return `U&"..."`
	case quoted:
		if len(text) > 65 || !plainName(strings.Trim(text, `"`)) {
			return `"..."`
		}
	case word:
		return strings.ToValidUTF8(text, "?")
	}
	if k == symbol && (text[0] < ' ' || text[0] >= 0x7f) {
		return "?"
	}
	return text
}

// plainName reports whether a name consists of letters, digits and underscores and begins with none of the digits.
func plainName(name string) bool {
	if name == "" || isDigit(name[0]) {
		return false
	}
	for i := range len(name) {
		if c := name[i]; !isLetter(c) && !isDigit(c) && c != '_' && c != '$' {
			return false
		}
	}
	return true
}
