package report

import "slices"

// table writes rows whose cells are broken into lines. The widths of the columns follow their longest cells.
func (w *pdfWriter) table(t *Table) {
	const size, height, gap = 8.5, 4.2, 2.0
	w.SetFont("sans", "", size)
	widths := w.widths(t, gap)
	row := func(cells []string, style string, firstBold bool) {
		lines, most := make([][]string, len(cells)), 1
		for i, cell := range cells {
			w.SetFont("sans", style, size)
			lines[i] = w.broken(basic(cell), widths[i]-gap)
			most = max(most, len(lines[i]))
		}
		for k := range most { // a line at a time, so that a row may go on on the next page
			w.keep(height)
			for i := range cells {
				text := ""
				if k < len(lines[i]) {
					text = lines[i][k]
				}
				w.SetFont("sans", style, size)
				if firstBold && i == 0 {
					w.SetFont("sans", "B", size)
				}
				w.CellFormat(widths[i], height, text, "", 0, "L", false, 0, "")
			}
			w.Ln(height)
		}
		w.SetDrawColor(180, 180, 180)
		w.Line(margin, w.GetY(), margin+pageWidth, w.GetY())
	}
	if t.Header != nil {
		row(t.Header, "B", false)
	}
	for _, cells := range t.Rows {
		row(cells, "", t.Header == nil)
	}
	w.Ln(2)
}

// broken returns the lines of a text in a width. Words that are too long are broken.
func (w *pdfWriter) broken(text string, width float64) (lines []string) {
	line := ""
	for _, r := range text {
		if r == '\n' {
			lines, line = append(lines, line), ""
			continue
		}
		if next := line + string(r); line == "" || w.GetStringWidth(next) <= width {
			line = next
			continue
		}
		runes := []rune(line)
		cut := len(runes)
		for i := len(runes) - 1; i > len(runes)/2; i-- {
			if runes[i] == ' ' {
				cut = i + 1
				break
			}
		}
		lines, line = append(lines, string(runes[:cut])), string(runes[cut:])+string(r)
	}
	return append(lines, line)
}

// widths divides the page among the columns: what each needs, and at most its part of what the longer ones leave.
func (w *pdfWriter) widths(t *Table, gap float64) []float64 {
	var widths []float64
	for _, cells := range append([][]string{t.Header}, t.Rows...) {
		for i, cell := range cells {
			if i >= len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], 1.1*w.GetStringWidth(basic(cell))+2*gap) // headers are bold
		}
	}
	order := make([]int, len(widths))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(i, j int) int {
		if widths[i] < widths[j] {
			return -1
		}
		return 1
	})
	left := pageWidth
	for k, i := range order {
		widths[i] = min(widths[i], left/float64(len(order)-k))
		left -= widths[i]
	}
	return widths
}
