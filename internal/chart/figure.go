package chart

import (
	_ "embed"
	"fmt"
	"html/template"
	"regexp"
	"strings"
)

// CSS is the style sheet of charts in a page. The page defines the colours --text, --quiet and --raised.
//
//go:embed chart.css
var CSS string

// Figure is a chart. The zero value is none, and writes nothing.
type Figure struct {
	labels Labels
	width  float64
	height float64
	body   string // elements of SVG
	keys   []key
	header []string   // of the table of values
	rows   [][]string // of the table of values
}

// key is an entry of a legend.
type key struct{ class, name string }

// Empty reports whether there is no chart.
func (f *Figure) Empty() bool { return f.body == "" }

// figure puts a drawing of the usual size into a figure.
func figure(l Labels, d *drawing, keys []key, header []string, rows [][]string) Figure {
	return Figure{l, width, height, d.String(), keys, header, rows}
}

// HTML returns the figure for a page: title, drawing, legend, and the values as a table. "" for no chart.
func (f Figure) HTML() template.HTML {
	if f.Empty() {
		return ""
	}
	var b strings.Builder
	fmt.Fprintf(&b, "<figure class=\"chart\">\n<figcaption><strong>%s</strong>", esc(f.labels.Title))
	if f.labels.Caption != "" {
		fmt.Fprintf(&b, " %s", esc(f.labels.Caption))
	}
	fmt.Fprintf(&b, "</figcaption>\n<svg viewBox=\"0 0 %s %s\" role=\"img\" aria-label=\"%s\">\n%s</svg>\n", num(f.width), num(f.height), esc(f.labels.Title), f.body)
	if len(f.keys) > 0 {
		b.WriteString(`<ul class="chart-legend">`)
		for _, k := range f.keys {
			fmt.Fprintf(&b, `<li><svg viewBox="0 0 28 10" width="28" height="10" aria-hidden="true">%s</svg> %s</li>`, swatch(k.class, 0, 0), esc(k.name))
		}
		b.WriteString("</ul>\n")
	}
	b.WriteString("<p class=\"chart-readout\" aria-live=\"polite\"></p>\n<details><summary>The values as a table</summary><div class=\"wide\" tabindex=\"0\" role=\"region\" aria-label=\"")
	b.WriteString(esc(f.labels.Title) + "\"><table>\n<thead><tr>")
	for _, h := range f.header {
		fmt.Fprintf(&b, `<th scope="col">%s</th>`, esc(h))
	}
	b.WriteString("</tr></thead>\n<tbody>\n")
	for _, row := range f.rows {
		b.WriteString("<tr>")
		for i, cell := range row {
			if i == 0 {
				fmt.Fprintf(&b, `<th scope="row">%s</th>`, esc(cell))
			} else {
				fmt.Fprintf(&b, "<td>%s</td>", esc(cell))
			}
		}
		b.WriteString("</tr>\n")
	}
	b.WriteString("</tbody></table></div></details>\n</figure>\n")
	return template.HTML(b.String()) // #nosec G203 -- texts are escaped above
}

// SVG returns the figure as a file of its own, on white: title, drawing and legend. nil for no chart.
func (f Figure) SVG() []byte {
	if f.Empty() {
		return nil
	}
	const head, entry, margin = 30.0, 20.0, 8.0
	tall := head + f.height + entry*float64(len(f.keys)) + margin
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" class="chart" viewBox="0 0 %s %s" width="%s" height="%s" role="img" aria-label="%s">`+"\n<style>%s</style>\n",
		num(f.width), num(tall), num(1.5*f.width), num(1.5*tall), esc(f.labels.Title), fileStyle())
	fmt.Fprintf(&b, `<rect width="%s" height="%s" fill="#fff"/>`+"\n"+`<text class="chart-title" x="%s" y="20">%s</text>`+"\n", num(f.width), num(tall), num(margin), esc(f.labels.Title))
	fmt.Fprintf(&b, `<g transform="translate(0 %s)">`+"\n%s</g>\n", num(head), f.body)
	for i, k := range f.keys {
		y := head + f.height + entry*float64(i)
		fmt.Fprintf(&b, `%s<text x="%s" y="%s">%s</text>`+"\n", swatch(k.class, left, y), num(left+36), num(y+10), esc(k.name))
	}
	b.WriteString("</svg>\n")
	return []byte(b.String())
}

// swatch draws what a class looks like, 28 by 10, at a position.
func swatch(class string, x, y float64) string {
	if strings.Contains(class, "fill") || strings.Contains(class, "bar") {
		return fmt.Sprintf(`<rect class="%s" x="%s" y="%s" width="28" height="10"/>`, class, num(x), num(y))
	}
	return fmt.Sprintf(`<path class="%s" d="M%s %sh28"/>`, class, num(x), num(y+5))
}

var (
	cssColor = regexp.MustCompile(`--([a-z]+): *([^;}]+);`)
	cssUse   = regexp.MustCompile(`var\(--([a-z]+)\)`)
)

// fileStyle returns the style sheet of a file. Its colours are those of a light page, written out: not every program
// that shows SVG reads variables.
func fileStyle() string {
	light, rules, _ := strings.Cut(CSS, "\n")
	_, rules, _ = strings.Cut(rules, "\n") // the second line holds the colours of a dark page
	colors := map[string]string{"text": "#1b1f24", "quiet": "#57606a", "raised": "#f6f8fa"}
	for _, m := range cssColor.FindAllStringSubmatch(light, -1) {
		colors[m[1]] = strings.TrimSpace(m[2])
	}
	rules = cssUse.ReplaceAllStringFunc(rules, func(use string) string { return colors[cssUse.FindStringSubmatch(use)[1]] })
	return "\n" + rules + ".chart .chart-title { font-size: 15px; font-weight: 600; }\n"
}
