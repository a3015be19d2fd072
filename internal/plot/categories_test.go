package plot_test

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
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
	if _, err := plot.Write(dir, f); err != nil {
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
	for _, want := range []string{`"<left> & right"`, "NULL", `"` + strings.Repeat("ü", 22) + "…", "D0", "D1", "event, likelier on D0", "column answer", "kept trials"} {
		if !slices.Contains(got, want) {
			t.Errorf("no %q in %q", want, got)
		}
	}
	c.Event = make([]bool, 3)
	if got := strings.Join(texts(t, analysis.Figures{Categories: c}, "categories"), "; "); strings.Contains(got, "event") {
		t.Errorf("no event is to be marked: %s", got)
	}
}

// TestWholeTicks: axes of counts have a few ticks, all at whole numbers, from one trial to millions.
func TestWholeTicks(t *testing.T) {
	t.Parallel()
	for _, most := range []int{1, 2, 3, 7, 192, 999, 1000, 4_321_000} {
		c := &analysis.Categories{Names: []withheld.Text{withheld.Public("x")}, D0: []int{most}, D1: []int{0}, Event: []bool{false}}
		marks := 0
		for _, s := range texts(t, analysis.Figures{Categories: c}, "categories") {
			if x, err := strconv.ParseFloat(s, 64); err == nil {
				if marks++; s != strconv.Itoa(int(x)) {
					t.Errorf("up to %d: mark %q", most, s)
				}
			}
		}
		if marks < 2 || marks > 7 {
			t.Errorf("up to %d: %d marks", most, marks)
		}
	}
}
