package sqltext

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// maxIdentifier is NAMEDATALEN - 1: the server truncates longer identifiers.
const maxIdentifier = 63

// identifierLists are the settings whose items the server quotes as identifiers (GUC_LIST_QUOTE).
var identifierLists = [...]string{
	"search_path", "temp_tablespaces", "local_preload_libraries",
	"session_preload_libraries", "shared_preload_libraries", "unix_socket_directories",
}

// set reads the rest of SET.
func (p *parser) set() Effect {
	local := false
	switch {
	case p.is("local"):
		local = true
		p.skipUnlessAssigned("local")
	case p.is("session"):
		p.skipUnlessAssigned("session")
	}
	e := p.setRest()
	e.Local = local && (e.Action == Set || e.Action == Reset || e.Action == Change)
	return e
}

// skipUnlessAssigned consumes the word w unless w is itself the name of the setting.
func (p *parser) skipUnlessAssigned(w string) {
	at := *p
	p.accept(w)
	if p.is("to") || p.is("authorization") && w == "session" || p.tok.kind == symbol {
		*p = at
	}
}

// setRest reads the rest of SET [SESSION | LOCAL].
func (p *parser) setRest() Effect {
	at := *p
	first := ""
	if p.tok.kind == word {
		first = Lower(p.text())
		p.advance()
	}
	assigned := p.is("to") || p.tok.kind == symbol
	switch {
	case assigned:
	case first == "transaction", first == "constraints", first == "characteristics":
		return Effect{} // cannot change the result of a query
	case first == "time" && p.accept("zone"):
		return p.timeZone()
	case first == "schema":
		return p.value("search_path")
	case first == "names":
		if p.tok.kind == end {
			return Effect{Action: Reset, Name: "client_encoding"}
		}
		return p.value("client_encoding")
	case first == "role":
		return p.value("role")
	case first == "session" && p.accept("authorization"):
		return p.value("session_authorization")
	case first == "xml" && p.accept("option"):
		return p.value("xmloption")
	}
	*p = at
	name, ok := p.setting()
	switch {
	case ok && p.is("from"): // FROM CURRENT
		return Effect{Action: Change, Name: name}
	case !ok || !(p.acceptSymbol('=') || p.accept("to")):
		return Effect{Action: Unclear}
	}
	return p.value(name)
}

func (p *expressions) timeZone() Effect {
	if p.is("local") {
		return Effect{Action: Reset, Name: "timezone"}
	}
	if p.is("interval") { // the server reports the time zone that it makes of it
		return Effect{Action: Change, Name: "timezone"}
	}
	return p.value("timezone")
}

// reset reads the rest of RESET.
func (p *parser) reset() Effect {
	at := *p
	switch {
	case p.accept("all"):
		return Effect{Action: ResetAll}
	case p.accept("time") && p.is("zone"):
		return Effect{Action: Reset, Name: "timezone"}
	case p.accept("session") && p.is("authorization"):
		return Effect{Action: Reset, Name: "session_authorization"}
	case p.accept("transaction") && p.is("isolation"):
		return Effect{}
	}
	*p = at
	name, ok := p.setting()
	if !ok {
		return Effect{Action: Unclear}
	}
	return Effect{Action: Reset, Name: name}
}

// value reads DEFAULT or a list of values for the setting name, to the end of the statement. A value that is not
// supported is not known.
func (p *expressions) value(name string) Effect {
	if p.accept("default") {
		return Effect{Action: Reset, Name: name}
	}
	quote := slices.Contains(identifierLists[:], name)
	var items []string
	for {
		item, ok := p.item()
		if !ok {
			return Effect{Action: Change, Name: name}
		}
		if quote {
			item = quoteIdentifier(item)
		}
		items = append(items, item)
		if !p.acceptSymbol(',') {
			break
		}
	}
	if p.tok.kind != end {
		return Effect{Action: Change, Name: name}
	}
	return Effect{Action: Set, Name: name, Value: strings.Join(items, ", ")}
}

// item reads one value of a list: a string, a number with or without sign, or a word.
func (p *expressions) item() (string, bool) {
	sign := ""
	switch {
	case p.acceptSymbol('-'):
		sign = "-"
	case p.acceptSymbol('+'):
	default:
		return p.literal()
	}
	if p.tok.kind != number {
		return "", false
	}
	v := sign + p.text()
	p.advance()
	return v, true
}

func (p *expressions) literal() (string, bool) {
	switch p.tok.kind {
	case number:
		v := p.text()
		p.advance()
		return v, true
	case str:
		v, ok := unquote(p.text())
		p.advance()
		return v, ok
	}
	return p.identifier()
}

// setting reads the name of a setting, which can have several parts.
func (p *names) setting() (string, bool) {
	name, ok := p.identifier()
	for ok && p.acceptSymbol('.') {
		var part string
		part, ok = p.identifier()
		name += "." + part
	}
	return Lower(name), ok
}

// identifier reads a name, normalised as the server does.
func (p *names) identifier() (string, bool) {
	name := p.text()
	switch p.tok.kind {
	case word:
		name = Lower(name)
	case quoted:
		if len(name) < 3 {
			return "", false
		}
		name = strings.ReplaceAll(name[1:len(name)-1], `""`, `"`)
	default:
		return "", false
	}
	p.advance()
	return cut(name), true
}

// cut truncates an identifier as the server does, at a character boundary.
func cut(name string) string {
	if len(name) <= maxIdentifier {
		return name
	}
	n := maxIdentifier
	for n > 0 && !utf8.RuneStart(name[n]) {
		n--
	}
	return name[:n]
}

// Lower folds A to Z only, as the server does for unquoted names and for names of settings.
func Lower(s string) string {
	if s == "SELECT" { // the most common first word
		return "select"
	}
	if !strings.ContainsFunc(s, func(r rune) bool { return 'A' <= r && r <= 'Z' }) {
		return s
	}
	b := []byte(s)
	for i, c := range b {
		if c >= 'A' && c <= 'Z' {
			b[i] = c + 'a' - 'A'
		}
	}
	return string(b)
}

// quoteIdentifier quotes name if PostgreSQL's quote_identifier would, except that it does not check for keywords.
func quoteIdentifier(name string) string {
	safe := name != "" && (name[0] == '_' || name[0] >= 'a' && name[0] <= 'z')
	for i := 0; safe && i < len(name); i++ {
		c := name[i]
		safe = c == '_' || c >= 'a' && c <= 'z' || isDigit(c)
	}
	if safe {
		return name
	}
	return `"` + strings.ReplaceAll(name, `"`, `""`) + `"`
}

// unquote returns the value of a complete string literal: '..', E'..' or $tag$..$tag$, including continued ones. ok is
// false for other forms and for unsupported escapes.
func unquote(s string) (string, bool) {
	switch {
	case s[0] == '$':
		tag := strings.IndexByte(s[1:], '$') + 2
		if len(s) < 2*tag {
			return "", false
		}
		return s[tag : len(s)-tag], true
	case s[0] == '\'':
		return unquoteSegments(s, false)
	case s[0]|0x20 == 'e':
		return unquoteSegments(s[1:], true)
	}
	return "", false
}

// unquoteSegments joins the quoted segments of s.
func unquoteSegments(s string, backslash bool) (string, bool) {
	var b strings.Builder
	for i, inside := 0, false; i < len(s); i++ {
		c := s[i]
		switch {
		case !inside:
			if strings.HasPrefix(s[i:], "--") {
				i += lineLength(s[i:]) - 1
			}
			inside = c == '\''
		case c == '\\' && backslash:
			i++
			if i >= len(s) {
				return "", false
			}
			v, ok := unescape(s[i])
			if !ok {
				return "", false
			}
			b.WriteByte(v)
		case c != '\'':
			b.WriteByte(c)
		case i+1 < len(s) && s[i+1] == '\'':
			b.WriteByte('\'')
			i++
		default:
			inside = false
		}
	}
	return b.String(), true
}

// unescape returns the meaning of a backslash and c in E'..'. Octal, hexadecimal and Unicode escapes are not supported.
func unescape(c byte) (byte, bool) {
	switch c {
	case 'b':
		return '\b', true
	case 'f':
		return '\f', true
	case 'n':
		return '\n', true
	case 'r':
		return '\r', true
	case 't':
		return '\t', true
	case 'x', 'u', 'U', '0', '1', '2', '3', '4', '5', '6', '7':
		return 0, false
	}
	return c, true
}
