package rewrite

import (
	pg_query "github.com/pganalyze/pg_query_go/v5"

	"github.com/dpwatch/dpwatch/internal/pgparse"
)

// words are the tokens of a text without its comments. Positions are indexes; -1 = there is no such token.
type words []*pg_query.ScanToken

func wordsOf(tokens []*pg_query.ScanToken) words {
	w := make(words, 0, len(tokens))
	for _, t := range tokens {
		if !pgparse.IsComment(t) {
			w = append(w, t)
		}
	}
	return w
}

// at returns the token that begins at an offset.
func (w words) at(offset int32) int {
	for i, t := range w {
		if t.GetStart() == offset {
			return i
		}
	}
	return -1
}

// find returns the first token of a kind from a position on, outside of parentheses that begin there.
func (w words) find(from int, kind pg_query.Token) int {
	if from < 0 {
		return -1
	}
	depth := 0
	for i := from; i < len(w); i++ {
		token := w[i].GetToken()
		switch {
		case depth == 0 && token == kind:
			return i
		case token == pg_query.Token_ASCII_40:
			depth++
		case token == pg_query.Token_ASCII_41:
			depth--
		}
	}
	return -1
}

// after returns the token behind the one that find returns.
func (w words) after(from int, kind pg_query.Token) int {
	if i := w.find(from, kind); i >= 0 {
		return i + 1
	}
	return -1
}

// closing returns the parenthesis that closes the one at a position.
func (w words) closing(open int) int {
	if open < 0 || open >= len(w) || w[open].GetToken() != pg_query.Token_ASCII_40 {
		return -1
	}
	return w.find(open+1, pg_query.Token_ASCII_41)
}

// afterName returns the position behind the name, possibly with a schema and a database, at a position.
func (w words) afterName(i int) int {
	if i < 0 {
		return -1
	}
	for i++; i+1 < len(w) && w[i].GetToken() == pg_query.Token_ASCII_46; i += 2 {
	}
	return i
}
