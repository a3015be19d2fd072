package plot_test

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/dpwatch/dpwatch/analysis"
	"github.com/dpwatch/dpwatch/internal/plot"
	"github.com/dpwatch/dpwatch/internal/withheld"
)

// texts plots the figures and returns the texts of one SVG, which must be well-formed.
func texts(t *testing.T, f analysis.Figures, name string) (all []string) {
	t.Helper()
	dir := t.TempDir()
	if _, err := plot.Write(dir, f, analysis.Report{}); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(filepath.Join(dir, name+".svg"))
	if err != nil {
		t.Fatal(err)
	}
	d := xml.NewDecoder(bytes.NewReader(data))
	for inText := false; ; {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		switch x := token.(type) {
		case xml.StartElement:
			inText = x.Name.Local == "text"
		case xml.EndElement:
			inText = false
		case xml.CharData:
			if inText {
				all = append(all, strings.TrimSpace(string(x)))
			}
		}
	}
}

func TestCategories(t *testing.T) {
	t.Parallel()
	c := &analysis.Categories{
		Label: withheld.Public("column answer"),
		Names: []withheld.Text{withheld.New(`"<left> & right"`, "a text"), withheld.Public("NULL"), withheld.Public(`"` + strings.Repeat("ü", 50) + `"`)},
		D0:    []int{700, 3, 0}, D1: []int{10, 3, 1}, Event: []bool{true, false, false}, Direction: "D0",
	}
	got := texts(t, analysis.Figures{Categories: c}, "categories")
	for _, want := range []string{`"<left> & right"`, "NULL", `"` + strings.Repeat("ü", 20) + "…", "D0, with the person", "D1, without the person", "event, likelier on D0", "How often each answer was given, column answer.", "kept trials"} {
		if !slices.Contains(got, want) {
			t.Errorf("no %q in %q", want, got)
		}
	}
	c.Event = make([]bool, 3)
	if got := strings.Join(texts(t, analysis.Figures{Categories: c}, "categories"), "; "); strings.Contains(got, "event") {
		t.Errorf("no event is to be marked: %s", got)
	}
}
