package owners

import (
	"regexp"
	"strconv"
	"strings"
)

// plain are names that YAML takes for strings, also in a list.
var plain = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)*$`)

var reserved = set("true false null yes no on off y n")

// word writes a text as a YAML scalar. "${" would be replaced by the configuration.
func word(text string) string {
	if plain.MatchString(text) && !reserved[strings.ToLower(text)] {
		return text
	}
	return strings.ReplaceAll(strconv.Quote(text), "${", "$${")
}

func words(texts []string) string {
	all := make([]string, len(texts))
	for i, text := range texts {
		all[i] = word(text)
	}
	return "[" + strings.Join(all, ", ") + "]"
}

// Line returns the candidate as a line of privacy.paths, without indentation: - {table: ..., columns: [...], to: ...}.
func (c Candidate) Line() string {
	line := "- {table: " + word(c.Table.String()) + ", columns: " + words(c.Columns) + ", to: " + word(c.To.String())
	if len(c.On) > 0 {
		line += ", on: " + words(c.On)
	}
	if c.Where != "" {
		line += ", where: " + strings.ReplaceAll(strconv.Quote(c.Where), "${", "$${")
	}
	if c.Act {
		line += ", act: true"
	}
	return line + "}"
}

// IgnoreLine returns the line of privacy.paths that declares that the column may name a removed unit, with a reason to
// fill in.
func (c Candidate) IgnoreLine() string {
	return "- {table: " + word(c.Table.String()) + ", columns: " + words(c.Columns) + ", ignore: REASON}"
}
