package claim

import (
	"net/url"
	"strings"

	pg_query "github.com/pganalyze/pg_query_go/v5"

	"github.com/dpwatch/dpwatch/internal/curve"
	"github.com/dpwatch/dpwatch/internal/pg/ident"
	"github.com/dpwatch/dpwatch/internal/pgparse"
)

// The keys of a claim in a comment.
const (
	commentEpsilon = "dp_epsilon"
	commentDelta   = "dp_delta"
	commentCurve   = "dp_curve"
)

// InComment reports whether a comment contains a claim, valid or not.
func InComment(sql string, tokens []*pg_query.ScanToken) bool {
	for _, t := range tokens {
		if t.GetToken() == pg_query.Token_C_COMMENT && hasClaimKey(pgparse.TokenText(sql, t)) {
			return true
		}
	}
	return false
}

// hasClaimKey reports whether a key of a claim is followed by an equals sign.
func hasClaimKey(comment string) bool {
	for _, key := range []string{commentEpsilon, commentDelta, commentCurve} {
		for rest := comment; ; {
			_, after, found := strings.Cut(rest, key)
			if !found {
				break
			}
			if strings.HasPrefix(strings.TrimLeft(after, ident.Space), "=") {
				return true
			}
			rest = after
		}
	}
	return false
}

// commentClaim reads the claim in the statement's comments, in sqlcommenter format:
//
//	/*application='shop',dp_delta='1e-6',dp_epsilon='0.5'*/
//	/*application='shop',dp_curve='mu=0.268'*/
//
// that is, key='value' pairs separated by commas, keys and values URL-encoded, a quote within a value written \'
// (https://google.github.io/sqlcommenter/spec/). Comments of other formats are ignored, but one with a key of a claim
// is refused, as are two comments with different claims. nil = no claim.
func commentClaim(sql string, tokens []*pg_query.ScanToken) (*part, error) {
	values := map[string]string{}
	for _, t := range tokens {
		if t.GetToken() != pg_query.Token_C_COMMENT || !hasClaimKey(pgparse.TokenText(sql, t)) {
			continue
		}
		pairs, ok := parseSQLComment(pgparse.TokenText(sql, t))
		if !ok {
			return nil, bad("a comment contains dp_epsilon, dp_delta or dp_curve, but is not of the form /*dp_epsilon='...',dp_delta='...'*/ or /*dp_curve='...'*/", int(t.GetStart()))
		}
		for _, pair := range pairs {
			key, value := pair[0], pair[1]
			if key != commentEpsilon && key != commentDelta && key != commentCurve {
				continue
			}
			if before, ok := values[key]; ok && before != value {
				return nil, bad("comments contain different values of "+key, int(t.GetStart()))
			}
			values[key] = value
		}
	}
	return commentPart(values)
}

// commentPart validates the numbers.
func commentPart(values map[string]string) (*part, error) {
	if len(values) == 0 {
		return nil, nil
	}
	if text, ok := values[commentCurve]; ok {
		if len(values) > 1 {
			return nil, bad("a comment contains dp_curve beside dp_epsilon or dp_delta: give one of the two claims", -1)
		}
		c, err := curve.Parse(text)
		if err != nil {
			return nil, bad("dp_curve in a comment "+err.Error(), -1)
		}
		p := curvePart(c)
		p.claim.Source = SourceComment
		return p, nil
	}
	epsilonText, ok := values[commentEpsilon]
	if !ok {
		return nil, bad("a comment contains dp_delta without dp_epsilon", -1)
	}
	p := &part{claim: Claim{Source: SourceComment}}
	var err error
	if p.claim.Epsilon, err = parseNumber(epsilonText); err != nil {
		return nil, bad("dp_epsilon in a comment: "+err.Error(), -1)
	}
	if deltaText, ok := values[commentDelta]; ok {
		if p.claim.Delta, err = parseNumber(deltaText); err != nil {
			return nil, bad("dp_delta in a comment: "+err.Error(), -1)
		}
		p.hasDelta = true
	}
	if err := check(p.claim.Epsilon, p.claim.Delta); err != nil {
		return nil, bad("the claim in a comment: "+err.Error(), -1)
	}
	return p, nil
}

// parseSQLComment parses one comment with its delimiters; ok is false if it is not in sqlcommenter format.
func parseSQLComment(comment string) (pairs [][2]string, ok bool) {
	rest := strings.TrimSuffix(strings.TrimPrefix(comment, "/*"), "*/")
	for {
		key, after, found := strings.Cut(rest, "=")
		if !found {
			return nil, false
		}
		value, after, found := quotedValue(strings.TrimLeft(after, ident.Space))
		if !found {
			return nil, false
		}
		key, err := url.PathUnescape(strings.Trim(key, ident.Space))
		if err != nil || key == "" {
			return nil, false
		}
		if value, err = url.PathUnescape(value); err != nil {
			return nil, false
		}
		pairs = append(pairs, [2]string{key, value})
		rest = strings.TrimLeft(after, ident.Space)
		if rest == "" {
			return pairs, true
		}
		if rest[0] != ',' {
			return nil, false
		}
		rest = rest[1:]
	}
}

// quotedValue parses 'value' at the start of s; \' within it is a quote.
func quotedValue(s string) (value, rest string, ok bool) {
	if !strings.HasPrefix(s, "'") {
		return "", "", false
	}
	var b strings.Builder
	for i := 1; i < len(s); i++ {
		switch {
		case s[i] == '\\' && i+1 < len(s):
			i++
			b.WriteByte(s[i])
		case s[i] == '\'':
			return b.String(), s[i+1:], true
		default:
			b.WriteByte(s[i])
		}
	}
	return "", "", false
}
