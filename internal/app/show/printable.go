package show

import (
	"strings"
	"unicode"
)

// Printable replaces characters that could control a terminal: names come from clients. Line ends are kept.
func Printable(text string) string {
	return strings.Map(func(r rune) rune {
		if r == '\n' || unicode.IsPrint(r) {
			return r
		}
		return '?'
	}, text)
}

// maxSummary is the length of the summary of a query in a table, in characters.
const maxSummary = 60

// Shortened returns the beginning of a text that is too long for a table.
func Shortened(text string) string {
	if r := []rune(text); len(r) > maxSummary {
		return string(r[:maxSummary-1]) + "…"
	}
	return text
}

// Capital returns a text that begins with a capital letter.
func Capital(text string) string {
	if text == "" {
		return ""
	}
	return strings.ToUpper(text[:1]) + text[1:]
}

// Words returns a state or verdict as words.
func Words(state string) string { return strings.ReplaceAll(state, "_", " ") }
