package pages

import (
	"bytes"
	"html/template"
	"net/http"
	"regexp"
	"strings"
	"sync"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/parser"

	"github.com/dpwatch/dpwatch/docs"
)

// headings gives a heading its text as ID, as links in diagnoses have it.
type headings struct{}

func (headings) Generate(value []byte, _ ast.NodeKind) []byte { return value }
func (headings) Put([]byte)                                   {}

// markdown reads docs/causes.md.
var markdown = goldmark.New(goldmark.WithParserOptions(parser.WithAutoHeadingID()))

// causes shows what causes violations, and how to fix them.
func (s *site) causes(*http.Request) (content, error) {
	var b bytes.Buffer
	_, text, _ := bytes.Cut(docs.Causes, []byte("\n")) // the title is that of the page
	if err := markdown.Convert(text, &b, parser.WithContext(parser.NewContext(parser.WithIDs(headings{})))); err != nil {
		return content{}, err
	}
	return content{"What causes a violation, and how do I fix it?", template.HTML(b.String())}, nil // #nosec G203 -- from a file of this program; raw HTML in it is left out
}

// fixes returns how to fix each cause, by its code: what docs/causes.md has after *Fix:*, with its SQL folded.
var fixes = sync.OnceValue(func() map[string]template.HTML {
	all := map[string]template.HTML{}
	for _, part := range bytes.Split(docs.Causes, []byte("\n## "))[1:] {
		code, text, _ := bytes.Cut(part, []byte("\n"))
		if _, fix, ok := bytes.Cut(text, []byte("*Fix:*")); ok {
			var b bytes.Buffer
			fix = bytes.TrimSpace(fix)
			if err := markdown.Convert(append(bytes.ToUpper(fix[:1]), fix[1:]...), &b); err == nil {
				html := strings.Replace(b.String(), "<pre>", "<details><summary>SQL example</summary><pre>", 1)
				html = strings.Replace(html, "</pre>", "</pre></details>", 1)
				all[string(code)] = template.HTML(html) // #nosec G203 -- from a file of this program; raw HTML in it is left out
			}
		}
	}
	return all
})

var causeLink = regexp.MustCompile(`docs/causes\.md#([a-z_]+)`)

// linked returns a text as HTML in which the page of a cause is a link.
func linked(text string) template.HTML {
	return template.HTML(causeLink.ReplaceAllString(template.HTMLEscapeString(text), `<a href="/causes#$1">more about it</a>`)) // #nosec G203 -- escaped
}
