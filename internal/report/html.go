package report

import (
	"bytes"
	"encoding/base64"
	"html/template"
)

// page is one file that loads nothing: the style is inside, and plots are data.
var page = template.Must(template.New("page").Funcs(template.FuncMap{
	"svg": func(text []byte) template.URL {
		return template.URL("data:image/svg+xml;base64," + base64.StdEncoding.EncodeToString(text)) // #nosec G203 -- drawn by package plot, and an image runs no scripts
	},
	"inc": func(n int) int { return min(n+1, 6) },
	"at":  func(level int, s Section) leveled { return leveled{level, s} },
}).Parse(`<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; img-src data:; style-src 'unsafe-inline'">
<title>{{.Title}}</title>
<style>
:root { color-scheme: light dark; --line: #8886; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; overflow-wrap: anywhere; }
table { border-collapse: collapse; margin: .5rem 0; }
th, td { border-bottom: 1px solid var(--line); padding: .25rem .75rem .25rem 0; text-align: left; vertical-align: top; }
td { white-space: pre-wrap; }
thead th, thead + tbody td { overflow-wrap: break-word; }
h2 { border-bottom: 2px solid var(--line); margin-top: 2.5rem; }
p { margin: .4rem 0; white-space: pre-wrap; }
figure { margin: 1rem 0; break-inside: avoid; }
figure img { width: 100%; max-width: 40rem; background: #fff; }
.wide { overflow-x: auto; }
@media print { body { max-width: none; } }
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
{{end}}{{range .Plots}}<figure><img src="{{svg .SVG}}" alt="{{.Title}}. {{.Caption}}"><figcaption>{{.Title}}. {{.Caption}}</figcaption></figure>
{{end}}{{range .Sections}}{{template "section" at (inc $level) .}}{{end}}</section>
{{end}}`))

// leveled is a section with the level of its heading.
type leveled struct {
	Level int
	Section
}

// HTML returns the document as one HTML file, which loads nothing from elsewhere and runs no scripts.
func HTML(d Document) ([]byte, error) {
	var b bytes.Buffer
	err := page.Execute(&b, d)
	return b.Bytes(), err
}
