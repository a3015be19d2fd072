package report

import (
	"bytes"
	"html/template"

	"github.com/dpwatch/dpwatch/internal/chart"
)

// page is one file that loads nothing: the style and the charts are inside. Print styles set light colours, begin no
// page between a heading and what follows it, and break no chart or table row. Sections of the report begin a page.
var page = template.Must(template.New("page").Funcs(template.FuncMap{
	"charts": func() template.CSS { return template.CSS(chart.CSS) }, // #nosec G203 -- a constant of this program
	"inc":    func(n int) int { return min(n+1, 6) },
	"at":     func(level int, s Section) leveled { return leveled{level, s} },
}).Parse(`<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>{{.Title}}</title>
<style>
{{charts}}
:root { color-scheme: light dark; --line: #8886; --text: #1b1f24; --quiet: #57606a; --raised: #f6f8fa; --page: #fff; }
@media (prefers-color-scheme: dark) { :root { --text: #e6e9ed; --quiet: #a3abb5; --raised: #1a2027; --page: #11151a; } }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; overflow-wrap: anywhere; color: var(--text); background: var(--page); }
table { border-collapse: collapse; margin: .5rem 0; }
th, td { border-bottom: 1px solid var(--line); padding: .25rem .75rem .25rem 0; text-align: left; vertical-align: top; }
td { white-space: pre-wrap; }
thead th, thead + tbody td { overflow-wrap: break-word; }
h2 { border-bottom: 2px solid var(--line); margin-top: 2.5rem; }
p { margin: .4rem 0; white-space: pre-wrap; }
figure { margin: 1rem 0; break-inside: avoid; }
.chart-readout { display: none; }
.wide { overflow-x: auto; }
@page { size: A4; margin: 18mm; }
@media print {
  :root { color-scheme: light; --line: #999; --text: #000; --quiet: #444; --raised: #f6f8fa; --page: #fff; --a: #1f6fb4; --b: #b35900; --c: #6d4aa8; --event: #f2c94c66; --threshold: #444c56; --grid: #d0d7de; --mark: #b3261e; }
  body { max-width: none; margin: 0; padding: 0; font-size: 10pt; }
  h2 { break-before: page; }
  main > section:first-of-type > h2 { break-before: auto; }
  h1, h2, h3, h4, figcaption { break-after: avoid; }
  p { orphans: 3; widows: 3; }
  tr, .chart { break-inside: avoid; }
  thead { display: table-header-group; }
  table { font-size: 8.5pt; width: 100%; }
  thead + tbody td:last-child { overflow-wrap: anywhere; }
  .chart { max-width: 130mm; }
  .chart svg { print-color-adjust: exact; }
  .chart details { display: none; }
  .wide { overflow: visible; }
}
</style>
</head>
<body>
<main>
<h1>{{.Title}}</h1>
{{range .Lead}}<p>{{.}}</p>
{{end}}{{range .Sections}}{{template "section" at 2 .}}{{end}}</main>
</body>
</html>
{{define "section"}}{{$level := .Level}}<section>
{{if eq $level 2}}<h2>{{.Title}}</h2>{{else if eq $level 3}}<h3>{{.Title}}</h3>{{else}}<h4>{{.Title}}</h4>{{end}}
{{range .Lines}}<p>{{.}}</p>
{{end}}{{with .Table}}<div class="wide"><table>
{{with .Header}}<thead><tr>{{range .}}<th scope="col">{{.}}</th>{{end}}</tr></thead>
{{end}}<tbody>
{{$named := not .Header}}{{range .Rows}}<tr>{{range $i, $cell := .}}{{if and $named (eq $i 0)}}<th scope="row">{{$cell}}</th>{{else}}<td>{{$cell}}</td>{{end}}{{end}}</tr>
{{end}}</tbody>
</table></div>
{{end}}{{range .Charts}}{{.HTML}}{{end}}{{range .Sections}}{{template "section" at (inc $level) .}}{{end}}</section>
{{end}}`))

// leveled is a section with the level of its heading.
type leveled struct {
	Level int
	Section
}

// HTML returns the document as one HTML file, which loads nothing from elsewhere and runs no scripts. A browser prints
// it on A4 pages.
func HTML(d Document) ([]byte, error) {
	var b bytes.Buffer
	err := page.Execute(&b, d)
	return b.Bytes(), err
}
