// Package pgparse is the only caller of libpg_query's scanner, parser and deparser, which are C, in this module. A text
// that could keep them busy for minutes, or crash the process, is rejected first, by a scan in Go in time proportional
// to the text.
//
// It owns the limits. In: SQL text, or a tree. Out: the unchanged result of libpg_query, or a *LimitError. It is pure.
// The texts come from clients and from catalogs.
package pgparse

import (
	pg_query "github.com/pganalyze/pg_query_go/v5"
	"github.com/pganalyze/pg_query_go/v5/parser"
	"google.golang.org/protobuf/proto"

	"github.com/dpwatch/dpwatch/internal/sqltext"
)

// Limits of every text. Measured with libpg_query 16: its output recurses at least once for each level of the tree and
// overflows a stack of 8 MB between 16,000 and 64,000 levels, while Go's protobuf decodes 1,250 of the widest levels;
// 16,000 nested comments, or consecutive operator characters, take 1 to 7 s, quadratic in their number. Within these
// limits a text of 256 KB takes well below a second, most of it because of the size of the tree.
const (
	MaxDepth     = 1000
	MaxComments  = 100
	MaxOperators = 64 // the server rejects a longer operator
)

// LimitError reports the limit that a text exceeds. It does not quote the text.
type LimitError struct {
	What   string
	Offset int // in bytes; -1 = not known
}

// Error returns a message with What.
func (e *LimitError) Error() string { return "SQL text rejected before parsing: " + e.What }

// Check reads a text once and returns a *LimitError if it must not reach libpg_query, otherwise nil.
func Check(sql string) error {
	if e := sqltext.Check(sql, sqltext.Limits{Depth: MaxDepth, Comments: MaxComments, Operators: MaxOperators}); e != nil {
		return &LimitError{What: e.What, Offset: e.Offset}
	}
	return nil
}

// TooManyTokens reports whether a text has more than limit tokens, not counting comments.
func TooManyTokens(sql string, limit int) bool {
	return sqltext.Check(sql, sqltext.Limits{Tokens: limit}) != nil
}

// Scan returns the tokens of a text, comments included.
func Scan(sql string) ([]*pg_query.ScanToken, error) {
	if err := Check(sql); err != nil {
		return nil, err
	}
	result, err := pg_query.Scan(sql)
	if err != nil {
		return nil, err
	}
	return result.GetTokens(), nil
}

// Parse returns the tree of a text.
func Parse(sql string) (*pg_query.ParseResult, error) {
	tree, _, err := ParseWire(sql)
	return tree, err
}

// ParseWire returns the tree of a text and its wire format.
func ParseWire(sql string) (*pg_query.ParseResult, []byte, error) {
	wire, err := Wire(sql)
	if err != nil {
		return nil, nil, err
	}
	tree := &pg_query.ParseResult{}
	if err := proto.Unmarshal(wire, tree); err != nil {
		return nil, nil, &LimitError{What: sqltext.ExcessDepth, Offset: -1}
	}
	return tree, wire, nil
}

// Wire returns only the wire format of a text's tree. The error can be a *NewerError.
func Wire(sql string) ([]byte, error) {
	if err := Check(sql); err != nil {
		return nil, err
	}
	wire, err := parser.ParseToProtobuf(sql)
	return wire, newer(sql, err)
}

// Fingerprint returns libpg_query's fingerprint of a text, which drops constants.
func Fingerprint(sql string) (string, error) {
	if err := Check(sql); err != nil {
		return "", err
	}
	return pg_query.Fingerprint(sql)
}

// Deparse converts a tree to text. The tree must be a result of Parse, with changes that make it deeper by at most a
// few levels: the depth is not checked.
func Deparse(tree *pg_query.ParseResult) (string, error) { return pg_query.Deparse(tree) }
