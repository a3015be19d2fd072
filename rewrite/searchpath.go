package rewrite

import (
	"strings"
)

// userSchema is the search_path entry for the schema with the current user's name.
const userSchema = "$user"

// parseSearchPath parses the value of search_path like the server (SplitIdentifierString in varlena.c): identifiers
// separated by commas, folded to lower case unless quoted, truncated at 63 bytes. ok is false if the server would reject
// it, or if it is the word DEFAULT without quotes, whose meaning only the server has.
func parseSearchPath(value string) (path []string, ok bool) {
	rest := strings.TrimLeft(value, pathSpace)
	if rest == "" {
		return []string{}, true
	}
	for {
		var name string
		if name, rest, ok = nextIdentifier(rest); !ok {
			return nil, false
		}
		path = append(path, name)
		rest = strings.TrimLeft(rest, pathSpace)
		if rest == "" {
			return path, true
		}
		if rest[0] != ',' {
			return nil, false
		}
		rest = strings.TrimLeft(rest[1:], pathSpace)
	}
}

// pathSpace holds the characters of PostgreSQL's scanner_isspace.
const pathSpace = " \t\n\r\f\v"

// nextIdentifier parses one identifier, quoted or not, at the start of s.
func nextIdentifier(s string) (name, rest string, ok bool) {
	if strings.HasPrefix(s, `"`) {
		return quotedIdentifier(s[1:])
	}
	end := strings.IndexAny(s, ","+pathSpace)
	if end < 0 {
		end = len(s)
	}
	name = foldASCII(s[:end])
	if name == "" || name == "default" || strings.Contains(name, `"`) {
		return "", "", false
	}
	return cutName(name), s[end:], true
}

// quotedIdentifier parses up to the closing quote; a doubled quote is one quote.
func quotedIdentifier(s string) (name, rest string, ok bool) {
	var b strings.Builder
	for {
		i := strings.IndexByte(s, '"')
		if i < 0 {
			return "", "", false
		}
		b.WriteString(s[:i])
		s = s[i+1:]
		if !strings.HasPrefix(s, `"`) {
			return cutName(b.String()), s, true
		}
		b.WriteByte('"')
		s = s[1:]
	}
}

// foldASCII lowers A to Z and leaves every other byte unchanged, like the server for UTF-8.
func foldASCII(s string) string {
	return strings.Map(func(r rune) rune {
		if 'A' <= r && r <= 'Z' {
			return r + 'a' - 'A'
		}
		return r
	}, s)
}

// cutName truncates a name at 63 bytes, not within a character.
func cutName(s string) string {
	if len(s) <= maxNameBytes {
		return s
	}
	end := maxNameBytes
	for end > 0 && s[end]&0xC0 == 0x80 {
		end--
	}
	return s[:end]
}
