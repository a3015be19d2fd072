package body

import (
	"slices"
	"strings"

	pg_query "github.com/pganalyze/pg_query_go/v5"

	"github.com/dpwatch/dpwatch/internal/pg/ident"
)

// tokenReader reads a body token by token.
type tokenReader struct {
	body   string
	tokens []*pg_query.ScanToken // without comments
	at     int
	failed bool
}

func (r *tokenReader) fail() { r.failed, r.at = true, len(r.tokens) }

// text returns token i as written, words in lower case; "" beyond the end.
func (r *tokenReader) text(i int) string {
	if i >= len(r.tokens) {
		return ""
	}
	return ident.Fold(r.body[r.tokens[i].GetStart():r.tokens[i].GetEnd()])
}

// name returns the token i, which is a name, as PostgreSQL stores it.
func (r *tokenReader) name(i int) string {
	text := r.text(i)
	if quoted, ok := strings.CutPrefix(text, `"`); ok {
		return strings.ReplaceAll(strings.TrimSuffix(quoted, `"`), `""`, `"`)
	}
	return text
}

// isName reports whether the token i is a word or a quoted identifier.
func (r *tokenReader) isName(i int) bool {
	if i >= len(r.tokens) {
		return false
	}
	t := r.tokens[i]
	return t.GetToken() == pg_query.Token_IDENT || t.GetToken() == pg_query.Token_UIDENT || t.GetKeywordKind() != pg_query.KeywordKind_NO_KEYWORD
}

// sign reports whether the next token is one of texts; a quoted identifier never is.
func (r *tokenReader) sign(texts ...string) bool {
	return r.at < len(r.tokens) && slices.Contains(texts, r.text(r.at))
}

func (r *tokenReader) accept(texts ...string) bool {
	if r.sign(texts...) {
		r.at++
		return true
	}
	return false
}

func (r *tokenReader) expect(texts ...string) {
	for _, text := range texts {
		if !r.accept(text) {
			r.fail()
		}
	}
}

// until consumes the text before the first of ends outside parentheses, and returns it.
func (r *tokenReader) until(ends ...string) string {
	from, depth := r.at, 0
	for ; r.at < len(r.tokens); r.at++ {
		if depth == 0 && r.sign(ends...) {
			return r.between(from, r.at)
		}
		switch r.text(r.at) {
		case "(", "[":
			depth++
		case ")", "]":
			depth--
		}
	}
	r.fail()
	return ""
}

// between returns the text from one token up to another.
func (r *tokenReader) between(from, to int) string {
	if from >= to || to >= len(r.tokens) {
		return ""
	}
	return r.body[r.tokens[from].GetStart():r.tokens[to].GetStart()]
}

// reset moves back to at and returns true, for use in a condition.
func (r *tokenReader) reset(at int) bool {
	r.at = at
	return true
}

func (p *plpgsqlSplitter) label() {
	if p.accept("<<") {
		p.named(p.at)
		p.at++
		p.expect(">>")
	}
}

// holds reports whether a text occurs between a token and the next one.
func (r *tokenReader) holds(from int, text string) bool {
	for i := from; i < r.at; i++ {
		if r.text(i) == text {
			return true
		}
	}
	return false
}
