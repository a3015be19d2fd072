package report

import (
	"bytes"
	"fmt"
	"time"

	"codeberg.org/go-fonts/liberation/liberationsansbold"
	"codeberg.org/go-fonts/liberation/liberationsansregular"
	"codeberg.org/go-pdf/fpdf"
)

// Sizes of a page, in millimetres.
const (
	margin     = 18.0
	pageWidth  = 210.0 - 2*margin
	lineHeight = 5.0
	plotWidth  = 130.0
	plotHeight = plotWidth * 10 / 16 // of the plots of package plot
)

// PDF returns the document as a PDF file, with its fonts. created is in its properties.
func PDF(d Document, created time.Time) ([]byte, error) {
	w := pdfWriter{Fpdf: fpdf.New("P", "mm", "A4", "")}
	w.SetCreationDate(created)
	w.SetModificationDate(created)
	w.SetCatalogSort(true)
	w.SetTitle(d.Title, true)
	w.SetMargins(margin, margin, margin)
	w.SetAutoPageBreak(true, margin)
	w.AddUTF8FontFromBytes("sans", "", liberationsansregular.TTF)
	w.AddUTF8FontFromBytes("sans", "B", liberationsansbold.TTF)
	w.SetFooterFunc(func() {
		w.SetY(-margin + lineHeight)
		w.SetFont("sans", "", 8)
		w.CellFormat(0, lineHeight, fmt.Sprintf("%d", w.PageNo()), "", 0, "C", false, 0, "")
	})
	w.AddPage()
	w.heading(d.Title, 0)
	for _, line := range d.Lead {
		w.paragraph(line)
	}
	for i := range d.Sections {
		w.section(&d.Sections[i], 1)
	}
	var b bytes.Buffer
	err := w.Output(&b)
	return b.Bytes(), err
}

type pdfWriter struct {
	*fpdf.Fpdf
	plots int
}

func (w *pdfWriter) heading(text string, level int) {
	size := []float64{20, 15, 12}[min(level, 2)]
	w.Ln(lineHeight * float64(3-min(level, 2)) / 2)
	w.keep(3 * lineHeight)
	w.SetFont("sans", "B", size)
	w.MultiCell(0, size/2, basic(text), "", "L", false)
	w.Bookmark(basic(text), level, -1)
	w.Ln(1)
}

func (w *pdfWriter) paragraph(text string) {
	w.SetFont("sans", "", 10)
	w.MultiCell(0, lineHeight, basic(text), "", "L", false)
	w.Ln(1)
}

// keep begins a page unless so much height is left on this one.
func (w *pdfWriter) keep(height float64) {
	if _, page := w.GetPageSize(); w.GetY()+height > page-margin {
		w.AddPage()
	}
}

func (w *pdfWriter) section(s *Section, level int) {
	w.heading(s.Title, level)
	for _, line := range s.Lines {
		w.paragraph(line)
	}
	if s.Table != nil {
		w.table(s.Table)
	}
	for _, p := range s.Plots {
		w.plot(p)
	}
	for i := range s.Sections {
		w.section(&s.Sections[i], level+1)
	}
}

func (w *pdfWriter) plot(p Plot) {
	w.keep(plotHeight + 3*lineHeight)
	name := fmt.Sprint("plot", w.plots)
	w.plots++
	w.RegisterImageOptionsReader(name, fpdf.ImageOptions{ImageType: "PNG"}, bytes.NewReader(p.PNG))
	w.ImageOptions(name, margin, w.GetY(), plotWidth, plotHeight, true, fpdf.ImageOptions{ImageType: "PNG"}, 0, "")
	w.paragraph(p.Title + ". " + p.Caption)
}

// basic replaces characters beyond the basic multilingual plane, which the PDF library does not support.
func basic(text string) string {
	runes := []rune(text)
	for i, r := range runes {
		if r > 0xffff {
			runes[i] = '\ufffd'
		}
	}
	return string(runes)
}
