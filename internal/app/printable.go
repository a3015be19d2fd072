package app

import (
	"strings"
	"unicode"
)

// printable replaces characters that could control a terminal: names come from clients. Line ends are kept.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if r == '\n' || unicode.IsPrint(r) {
			return r
		}
		return '?'
	}, text)
}

// maxSummary is the length of the summary of a query in a table, in characters.
const maxSummary = 60

// shortened returns the beginning of a text that is too long for a table.
func shortened(text string) string {
	if r := []rune(text); len(r) > maxSummary {
		return string(r[:maxSummary-1]) + "…"
	}
	return text
}
