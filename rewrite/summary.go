package rewrite

import (
	"strings"
	"unicode"
	"unicode/utf8"

	pg_query "github.com/pganalyze/pg_query_go/v5"

	"github.com/dpwatch/dpwatch/internal/pgparse"
)

// maxSummaryBytes is the length of Plan.Summary. Rules match the whole summary.
const maxSummaryBytes = 240

// summarize formats the tokens in one line: without comments, literals as ?, lists of them as one "?, ...". It copies
// only tokens that cannot hold a literal.
func summarize(sql string, tokens []*pg_query.ScanToken) string {
	var out []byte
	end := int32(-1)                         // of the previous token
	literal, comma, more := -1, false, false // offset in out after the last literal, what came after it, and whether it is a list
	for _, t := range tokens {
		if pgparse.IsComment(t) {
			continue
		}
		word := summaryWord(sql, t)
		space := end >= 0 && t.GetStart() > end
		end = t.GetEnd()
		if word == "?" && literal >= 0 && comma {
			out = out[:literal]
			if !more {
				out = append(out, ", ..."...)
			}
			literal, comma, more = len(out), false, true
			continue
		}
		if space {
			out = append(out, ' ')
		}
		out = append(out, word...)
		switch {
		case word == "?":
			literal, comma, more = len(out), false, false
		case word == "," && literal >= 0 && !comma:
			comma = true
		default:
			literal = -1
		}
	}
	return string(out)
}

func summaryWord(sql string, t *pg_query.ScanToken) string {
	switch t.GetToken() {
	case pg_query.Token_SCONST, pg_query.Token_USCONST, pg_query.Token_BCONST, pg_query.Token_XCONST,
		pg_query.Token_ICONST, pg_query.Token_FCONST:
		return "?"
	case pg_query.Token_UIDENT:
		return `U&"..."` // the scanner does not return its end
	}
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, pgparse.TokenText(sql, t))
}

// cutText cuts s at the start of a character at or before limit bytes and marks the cut.
func cutText(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	const mark = "..."
	end := limit - len(mark)
	for end > 0 && !utf8.RuneStart(s[end]) {
		end--
	}
	return s[:end] + mark
}
