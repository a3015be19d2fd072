package config

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"
)

// flowScalar returns the text of a plain scalar with a colon, such as 127.0.0.1:6432, that the YAML library has parsed
// as a key and a value. The library does so with the items of [127.0.0.1:6432, fd00::/8] within { }. In YAML, a colon
// ends a key only if a space follows (YAML 1.2.2, section 7.3.3). ok is false for any other node.
func flowScalar(n ast.Node) (text string, ok bool) {
	pair := onlyPair(n)
	if pair == nil {
		return "", false
	}
	key, colon, value := pair.Key.GetToken(), pair.Start, pair.Value.GetToken()
	if !plain(key) || !plain(value) || !follows(key, colon) || !follows(colon, value) {
		return "", false
	}
	return key.Value + ":" + value.Value, true
}

// onlyPair returns the pair of a mapping with one key and no braces; nil for any other node.
func onlyPair(n ast.Node) *ast.MappingValueNode {
	switch n := n.(type) {
	case *ast.MappingValueNode:
		return n
	case *ast.MappingNode:
		if len(n.Values) == 1 && n.Start != nil && n.Start.Type == token.MappingValueType {
			return n.Values[0]
		}
	}
	return nil
}

// plain reports whether a token is an unquoted scalar.
func plain(t *token.Token) bool {
	if t == nil || t.Position == nil {
		return false
	}
	switch t.Type {
	case token.StringType, token.IntegerType, token.FloatType, token.HexIntegerType, token.OctetIntegerType, token.BinaryIntegerType, token.BoolType:
		return true
	}
	return false
}

// follows reports whether b directly follows a.
func follows(a, b *token.Token) bool {
	if a == nil || b == nil || a.Position == nil || b.Position == nil {
		return false
	}
	return a.Position.Line == b.Position.Line && a.Position.Column+len([]rune(a.Value)) == b.Position.Column
}

// quoteAdvice returns the end of an error message about a mapping where a single value is expected: for [localhost:
// 6432], it advises to write "localhost:6432". It returns "" for other nodes.
func quoteAdvice(n ast.Node) string {
	if pair := onlyPair(n); pair != nil && plain(pair.Key.GetToken()) && plain(pair.Value.GetToken()) {
		return fmt.Sprintf(": write a value with a colon in quotation marks, %q",
			pair.Key.GetToken().Value+":"+pair.Value.GetToken().Value)
	}
	return ""
}

// Unquoted values that YAML parses as a list or a mapping: [::1]:6432, and ${NAME} inside [ ] or { }.
var (
	bareIPv6     = regexp.MustCompile(`[^"'\w$]\[[0-9A-Fa-f:.]*:[0-9A-Fa-f:.]*(%\w+)?\]`)
	bareVariable = regexp.MustCompile(`[\[{,].*[^"'\w$:/@-]\$\{`)
)

// syntaxError returns the error of a file that is not valid YAML, with advice if the line contains a value that needs
// quotation marks.
func syntaxError(file string, data []byte, err error) Error {
	f := Error{File: file, Text: "invalid YAML: " + err.Error()}
	var syntax *yaml.SyntaxError
	if !errors.As(err, &syntax) {
		return f
	}
	f.Text = "invalid YAML: " + syntax.Message
	if syntax.Token == nil || syntax.Token.Position == nil {
		return f
	}
	f.Line = syntax.Token.Position.Line
	lines := bytes.Split(data, []byte("\n"))
	if f.Line < 1 || f.Line > len(lines) {
		return f
	}
	switch line := lines[f.Line-1]; {
	case bareIPv6.Match(line):
		f.Text += `; an address that begins with [ or : needs quotation marks: "[::1]:6432", ":6432"`
	case bareVariable.Match(line):
		f.Text += `; inside [ ] and { } a value with ${NAME} needs quotation marks: "${NAME}"`
	}
	return f
}
