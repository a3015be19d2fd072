package report

import (
	"bytes"
	"html/template"

	"github.com/dpwatch/dpwatch/internal/chart"
)

// page is one file that loads nothing: the style and the charts are inside. Print styles set light colours, begin no
// page between a heading and what follows it, and break no chart or table row.
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
th { overflow-wrap: break-word; }
.lines td { white-space: nowrap; }
.lines td:last-child { width: 100%; max-width: 0; min-width: 12rem; overflow: hidden; text-overflow: ellipsis; }
thead th, thead + tbody td { overflow-wrap: break-word; }
h2 { border-bottom: 2px solid var(--line); margin-top: 2.5rem; }
p { margin: .4rem 0; white-space: pre-wrap; }
figure { margin: 1rem 0; break-inside: avoid; }
.signatures { display: grid; grid-template-columns: 1fr 1fr; gap: 0 2rem; break-inside: avoid; }
.signature { border-top: 1px solid var(--text); margin-top: 3.5rem; padding-top: .2rem; color: var(--quiet); font-size: .85em; }
.chart-readout { display: none; }
.wide { overflow-x: auto; }
@page { size: A4; margin: 14mm 16mm; }
@media print {
  :root { color-scheme: light; --line: #999; --text: #000; --quiet: #444; --raised: #f6f8fa; --page: #fff; --a: #1f6fb4; --b: #b35900; --c: #6d4aa8; --event: #f2c94c66; --threshold: #444c56; --grid: #d0d7de; --mark: #b3261e; }
  body { max-width: none; margin: 0; padding: 0; font: 9.5pt/1.3 system-ui, sans-serif; }
  .page { break-before: page; }
  .whole { break-inside: avoid; display: grid; grid-template-columns: minmax(0, 1fr) 58mm; gap: 0 4mm; align-items: start; }
  .whole > h2 { grid-column: 1 / 3; }
  .whole > .charts { grid-template-columns: 1fr; }
  h1 { font-size: 14pt; margin: 0 0 2mm; }
  h2 { font-size: 11pt; margin: 4mm 0 1mm; border-width: 1px; }
  h3 { font-size: 10.5pt; margin: 3mm 0 1mm; }
  p { margin: 1mm 0; }
  .signature { margin-top: 10mm; }
  h1, h2, h3, h4, figcaption { break-after: avoid; }
  p { orphans: 3; widows: 3; }
  tr, .chart { break-inside: avoid; }
  thead { display: table-header-group; }
  table { font-size: 8pt; width: 100%; margin: 1mm 0; }
  th, td { padding: .6mm 3mm .6mm 0; }
  thead + tbody td:last-child { overflow-wrap: anywhere; }
  .charts { grid-template-columns: 1fr 1fr; }
  figure, .chart-legend { margin: 1mm 0; font-size: 8pt; line-height: 1.3; }
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
{{define "section"}}{{$level := .Level}}<section{{if or .Page .Whole}} class="{{if .Page}}page {{end}}{{if .Whole}}whole{{end}}"{{end}}>
{{if not .Title}}{{else if eq $level 2}}<h2>{{.Title}}</h2>{{else if eq $level 3}}<h3>{{.Title}}</h3>{{else}}<h4>{{.Title}}</h4>{{end}}
{{range .Lines}}<p>{{.}}</p>
{{end}}{{with .Table}}<div class="wide"><table{{if .Lines}} class="lines"{{end}}>
{{with .Header}}<thead><tr>{{range .}}<th scope="col">{{.}}</th>{{end}}</tr></thead>
{{end}}<tbody>
{{$named := not .Header}}{{range .Rows}}<tr>{{range $i, $cell := .}}{{if and $named (eq $i 0)}}<th scope="row">{{$cell}}</th>{{else}}<td>{{$cell}}</td>{{end}}{{end}}</tr>
{{end}}</tbody>
</table></div>
{{end}}{{with .Charts}}<div class="charts">{{range .}}{{.HTML}}{{end}}</div>
{{end}}{{with .Signatures}}<div class="signatures">{{range .}}<div class="signature">{{.}}</div>{{end}}</div>
{{end}}{{range .Sections}}{{template "section" at (inc $level) .}}{{end}}</section>
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
