package pgparse

import (
	"errors"
	"slices"
	"strings"

	pg_query "github.com/pganalyze/pg_query_go/v5"
	"github.com/pganalyze/pg_query_go/v5/parser"
)

// Grammar is what libpg_query parses.
const Grammar = "PostgreSQL 16's grammar"

// NewerError is the error of libpg_query for syntax that a later version of PostgreSQL has.
type NewerError struct {
	Syntax string
	cause  error
}

// Error names the syntax. It does not quote the text.
func (e *NewerError) Error() string { return e.Syntax + " is newer than " + Grammar }

func (e *NewerError) Unwrap() error { return e.cause }

// Because continues a message about text that cannot be parsed, with ": " before it, if the error is a *NewerError.
func Because(err error) string {
	var newer *NewerError
	if errors.As(err, &newer) {
		return ": " + newer.Error()
	}
	return ""
}

// newerSyntax lists syntax of PostgreSQL 17 to 19 by the words that occur in it, in their order. A gap between words is
// "...".
var newerSyntax = []struct{ name, words string }{
	{"JSON_TABLE", "JSON_TABLE ("},
	{"JSON_QUERY", "JSON_QUERY ("},
	{"JSON_VALUE", "JSON_VALUE ("},
	{"JSON_EXISTS", "JSON_EXISTS ("},
	{"JSON_SERIALIZE with RETURNING", "JSON_SERIALIZE ( ... RETURNING"},
	{"JSON with a clause", "JSON ( ... WITH"},
	{"JSON with a clause", "JSON ( ... WITHOUT"},
	{"MERGE ... WHEN NOT MATCHED BY", "MERGE ... NOT MATCHED BY"},
	{"MERGE ... RETURNING", "MERGE ... RETURNING"},
	{"GROUP BY ALL", "GROUP BY ALL"},
	{"IGNORE NULLS", "IGNORE NULLS"},
	{"RESPECT NULLS", "RESPECT NULLS"},
	{"RETURNING WITH", "RETURNING WITH ("},
	{"ON CONFLICT DO SELECT", "CONFLICT ... DO SELECT"},
	{"FOR PORTION OF", "FOR PORTION OF"},
	{"GRAPH_TABLE", "GRAPH_TABLE ("},
	{"PROPERTY GRAPH", "PROPERTY GRAPH"},
	{"AT LOCAL", "AT LOCAL"},
	{"a virtual generated column", "GENERATED ALWAYS AS ( ... )"},
	{"WITHOUT OVERLAPS", "WITHOUT OVERLAPS"},
	{"PERIOD in a foreign key", "FOREIGN KEY ( ... PERIOD"},
	{"ENFORCED", "ENFORCED"},
	{"SPLIT PARTITION", "SPLIT PARTITION"},
	{"MERGE PARTITIONS", "MERGE PARTITIONS"},
	{"SET EXPRESSION", "SET EXPRESSION"},
	{"ANALYZE ONLY", "ANALYZE ONLY"},
	{"VACUUM ONLY", "VACUUM ONLY"},
	{"REPACK", "REPACK"},
	{"WAIT FOR", "WAIT FOR"},
}

// newer returns err, the error of parsing a text, or a *NewerError if the text has syntax of a later version that begins
// before the error.
func newer(sql string, err error) error {
	var fault *parser.Error
	if !errors.As(err, &fault) {
		return err
	}
	scanned, scanErr := pg_query.Scan(sql)
	if scanErr != nil {
		return err
	}
	before := []rune(sql)
	if fault.Cursorpos > 0 {
		before = before[:min(fault.Cursorpos, len(before))]
	}
	var words []word
	for _, t := range scanned.GetTokens() {
		if text := TokenText(sql, t); !IsComment(t) && len(text) > 0 && text[0] != '\'' && text[0] != '$' {
			words = append(words, word{strings.ToUpper(text), int(t.GetStart())})
		}
	}
	for _, s := range newerSyntax {
		if at := find(words, strings.Split(s.words, " ... ")); at >= 0 && at < len(string(before)) {
			return &NewerError{s.name, err}
		}
	}
	return err
}

// word is a token in upper case, and its offset.
type word struct {
	text string
	at   int
}

// find returns the offset of the first of some phrases that follow each other in a text; -1 = they do not.
func find(words []word, phrases []string) int {
	first := -1
	for _, phrase := range phrases {
		all := strings.Fields(phrase)
		for !begins(words, all) {
			if len(words) < len(all) {
				return -1
			}
			words = words[1:]
		}
		if first < 0 {
			first = words[0].at
		}
		words = words[len(all):]
	}
	return first
}

func begins(words []word, phrase []string) bool {
	return len(words) >= len(phrase) && slices.EqualFunc(words[:len(phrase)], phrase, func(w word, text string) bool { return w.text == text })
}
