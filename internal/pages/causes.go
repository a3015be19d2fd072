package pages

import (
	"bytes"
	"html/template"
	"net/http"
	"regexp"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/parser"

	"github.com/dpwatch/dpwatch/docs"
)

// headings gives a heading its text as ID, as links in diagnoses have it.
type headings struct{}

func (headings) Generate(value []byte, _ ast.NodeKind) []byte { return value }
func (headings) Put([]byte)                                   {}

// causes shows what causes violations, and how to fix them.
func (s *site) causes(*http.Request) (content, error) {
	var b bytes.Buffer
	_, text, _ := bytes.Cut(docs.Causes, []byte("\n")) // the title is that of the page
	m := goldmark.New(goldmark.WithParserOptions(parser.WithAutoHeadingID()))
	if err := m.Convert(text, &b, parser.WithContext(parser.NewContext(parser.WithIDs(headings{})))); err != nil {
		return content{}, err
	}
	return content{"What causes a violation, and how do I fix it?", template.HTML(b.String())}, nil // #nosec G203 -- from a file of this program; raw HTML in it is left out
}

var causeLink = regexp.MustCompile(`docs/causes\.md#([a-z_]+)`)

// linked returns a text as HTML in which the page of a cause is a link.
func linked(text string) template.HTML {
	return template.HTML(causeLink.ReplaceAllString(template.HTMLEscapeString(text), `<a href="/causes#$1">how to fix it</a>`)) // #nosec G203 -- escaped
}
