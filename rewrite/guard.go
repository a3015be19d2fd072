package rewrite

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	pg_query "github.com/pganalyze/pg_query_go/v5"
	"github.com/pganalyze/pg_query_go/v5/parser"
	"google.golang.org/protobuf/proto"

	"github.com/dpwatch/dpwatch/internal/capture"
	"github.com/dpwatch/dpwatch/internal/pgparse"
	"github.com/dpwatch/dpwatch/rewrite/reasons"
)

// parsed is a statement with its tokens, its tree and the tree's wire form.
type parsed struct {
	tokens []*pg_query.ScanToken // comments included
	stmt   *pg_query.SelectStmt
	wire   []byte
	to     string // where the rows go; "" = to the client

	whole  *pg_query.Node        // the client's statement
	words  []*pg_query.ScanToken // its tokens
	within bool                  // it runs the query stmt
}

// maxContents bounds the statements within each other: EXPLAIN ANALYZE CREATE TABLE t AS SELECT has two.
const maxContents = 4

// parse checks text and settings, then scans and parses. The only statement must be a SELECT, or one that runs a
// SELECT; then q.SQL becomes that SELECT, at the same offset. With an error it still returns the whole statement, if it
// could be parsed.
func (r *Rewriter) parse(q *capture.Query) (*parsed, error) {
	if err := r.guard(*q); err != nil {
		return nil, err
	}
	tokens, err := pgparse.Scan(q.SQL)
	if err != nil {
		return nil, parseError(q.SQL, err)
	}
	stmt, wire, err := parseOne(q.SQL, tokens)
	if err != nil {
		return nil, err
	}
	to, p := "", &parsed{whole: stmt.GetStmt(), words: tokens}
	for range maxContents {
		c, err := contentOf(stmt.GetStmt(), q.SQL, wordsOf(tokens), *q)
		if err != nil {
			return p, err
		}
		if c == nil {
			break
		}
		if to == "" || c.to != "" && c.to != byCursor { // EXPLAIN ANALYZE DECLARE makes no cursor
			to = c.to
		}
		q.SQL, tokens = c.text(q.SQL, tokens)
		if stmt, wire, err = parseOne(q.SQL, tokens); err != nil {
			return p, err
		}
		if !proto.Equal(c.node, stmt.GetStmt()) {
			return p, notFound()
		}
		p.within = true
	}
	if v := stmt.GetStmt().GetRefreshMatViewStmt(); v != nil && r.refreshed(v, q, tokens) {
		to = intoRelation("materialized view", Table{Schema: v.GetRelation().GetSchemaname(), Name: v.GetRelation().GetRelname()})
		if err := r.guard(*q); err != nil {
			return p, err
		}
		if tokens, err = pgparse.Scan(q.SQL); err != nil {
			return p, parseError(q.SQL, err)
		}
		if stmt, wire, err = parseOne(q.SQL, tokens); err != nil {
			return p, err
		}
		p.within = true
	}
	if stmt.GetStmt().GetSelectStmt() == nil {
		return p, notSelect(stmt.GetStmt(), firstToken(tokens, stmt.GetStmtLocation()))
	}
	p.tokens, p.stmt, p.wire, p.to = tokens, stmt.GetStmt().GetSelectStmt(), wire, to
	return p, nil
}

// guard refuses input that must not reach the parser or that it would read differently than the server.
func (r *Rewriter) guard(q capture.Query) error {
	if len(q.SQL) > r.options.MaxBytes {
		return refuse(reasons.TooLarge, fmt.Sprintf("the statement has %d bytes, and the limit is %d", len(q.SQL), r.options.MaxBytes), "raise proxy.max_statement")
	}
	if strings.IndexByte(q.SQL, 0) >= 0 {
		return refuse(reasons.InvalidEncoding, "the text contains a NUL byte", "")
	}
	if !utf8.ValidString(q.SQL) {
		return refuse(reasons.InvalidEncoding, "the text is not UTF-8", "set client_encoding to UTF8 in the client")
	}
	if e, ok := q.Settings["client_encoding"]; ok && !isUTF8Name(e) {
		return refuse(reasons.InvalidEncoding, "the session's client_encoding is not UTF8", "set client_encoding to UTF8 in the client")
	}
	if s, ok := q.Settings["standard_conforming_strings"]; ok && !pgparse.IsOn(s) {
		return refuse(reasons.SettingsUncertain, "standard_conforming_strings is off, so that the parser would read strings differently than the server", "set standard_conforming_strings to on in the client")
	}
	if pgparse.TooManyTokens(q.SQL, r.options.MaxTokens) {
		return refuse(reasons.TooLarge, fmt.Sprintf("the statement has more than %d tokens", r.options.MaxTokens), "split the statement")
	}
	if d := r.options.database(); d != "" && q.Database != "" && q.Database != d {
		return refuse(reasons.OtherDatabase, "the session is connected to another database than that of the protected tables", "")
	}
	return nil
}

func isUTF8Name(encoding string) bool {
	switch strings.NewReplacer("-", "", "_", "", " ", "", "'", "").Replace(strings.ToLower(encoding)) {
	case "utf8", "unicode":
		return true
	}
	return false
}

// parseError converts an error of pgparse or libpg_query to a refusal, without the part of the message that quotes the
// statement.
func parseError(sql string, err error) error {
	refusal := refuse(reasons.Unparseable, "", "")
	var limit *pgparse.LimitError
	if errors.As(err, &limit) {
		refusal = refuse(reasons.TooDeep, limit.What, "use fewer levels: a list or VALUES instead of a chain of operators")
		refusal.Offset = limit.Offset
		return refusal
	}
	var fault *parser.Error
	if !errors.As(err, &fault) {
		refusal.Detail = "the scanner's output cannot be decoded"
		return refusal
	}
	detail, _, _ := strings.Cut(fault.Message, `"`)
	refusal.Detail = strings.TrimSuffix(strings.TrimSpace(detail), " at or near")
	if fault.Cursorpos > 0 {
		refusal.Offset = byteOffset(sql, fault.Cursorpos-1)
	}
	if strings.Contains(detail, "memory exhausted") || strings.Contains(detail, "stack depth") {
		refusal.Reason = reasons.TooDeep
	}
	return refusal
}

// byteOffset converts an offset in characters, as in libpg_query's errors, to bytes.
func byteOffset(sql string, characters int) int {
	for i := range sql {
		if characters == 0 {
			return i
		}
		characters--
	}
	return len(sql)
}

// parseOne parses the only statement of a text, and also returns the wire format of the whole tree.
func parseOne(sql string, tokens []*pg_query.ScanToken) (*pg_query.RawStmt, []byte, error) {
	tree, wire, err := pgparse.ParseWire(sql)
	if err != nil {
		return nil, nil, parseError(sql, err)
	}
	switch stmts := tree.GetStmts(); len(stmts) {
	case 0:
		return nil, nil, refuse(reasons.Empty, "the text contains no statement", "")
	case 1:
		return stmts[0], wire, nil
	default:
		refusal := refuse(reasons.MultipleStatements, "the text contains more than one statement", "send the statements one by one")
		refusal.Offset = firstToken(tokens, stmts[1].GetStmtLocation())
		return nil, nil, refusal
	}
}

// firstToken returns the offset of the first token, except comments, at or after from; -1 = none.
func firstToken(tokens []*pg_query.ScanToken, from int32) int {
	for _, t := range tokens {
		if t.GetStart() >= from && !pgparse.IsComment(t) {
			return int(t.GetStart())
		}
	}
	return -1
}

// nodeName returns the type of a Node's content: "InsertStmt".
func nodeName(n *pg_query.Node) string {
	m := n.ProtoReflect()
	if fd := m.WhichOneof(m.Descriptor().Oneofs().ByName("node")); fd != nil {
		return string(fd.Message().Name())
	}
	return "Node"
}
