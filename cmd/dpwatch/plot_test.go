package main

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"image/color"
	"image/png"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// svgText returns the text of an SVG file, which must be well-formed XML with svg as its root.
func svgText(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	d := xml.NewDecoder(bytes.NewReader(data))
	var text strings.Builder
	root := ""
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		switch token := token.(type) {
		case xml.StartElement:
			if root == "" {
				root = token.Name.Local
			}
		case xml.CharData:
			text.Write(token)
			text.WriteByte('\n')
		}
	}
	if root != "svg" {
		t.Errorf("%s: the root is %q", path, root)
	}
	return text.String()
}

// pngColors counts the pixels of a PNG file by colour.
func pngColors(t *testing.T, path string) map[color.NRGBA]int {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	img, err := png.Decode(file)
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	colors := map[color.NRGBA]int{}
	for y := img.Bounds().Min.Y; y < img.Bounds().Max.Y; y++ {
		for x := img.Bounds().Min.X; x < img.Bounds().Max.X; x++ {
			colors[color.NRGBAModel.Convert(img.At(x, y)).(color.NRGBA)]++
		}
	}
	return colors
}

func TestAnalyzePlot(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(3, 5))
	dir := filepath.Join(t.TempDir(), "plots")
	d0, d1 := file(t, "d0", laplace(rng, 1000, 0, 1)), file(t, "d1", laplace(rng, 1000, 1, 1))
	// True epsilon 1, claim 0.3: detected within some 100 pairs.
	call(t, "", "analyze", "--d0", d0, "--d1", d1, "--epsilon", "0.3", "--plot", dir).want(t, exitViolation)

	var (
		blue   = color.NRGBA{R: 31, G: 119, B: 180, A: 255}
		orange = color.NRGBA{R: 255, G: 127, B: 14, A: 255}
		grey   = color.NRGBA{R: 120, G: 120, B: 120, A: 255}
	)
	want := map[string]struct {
		texts  []string
		colors []color.NRGBA
	}{
		"histogram": {[]string{"Results on D0 and D1", "column value", "kept trials", "D0", "D1", "event, likelier on D"}, []color.NRGBA{blue, orange}},
		"wealth":    {[]string{"Evidence against the claim", "pairs of trials", "log-wealth (nats)", "wealth", "violation: ln(1/alpha)", "1000"}, []color.NRGBA{blue, grey}},
		"bound":     {[]string{"Certified lower bound", "pairs of trials", "epsilon", "lower bound", "claim", "1000"}, []color.NRGBA{blue, grey}},
		"profile":   {[]string{"Privacy profile: certified at least", "epsilon", "delta"}, []color.NRGBA{blue}},
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 2*len(want) {
		t.Fatalf("%d files, %v; want an SVG and a PNG of each of %d figures", len(entries), err, len(want))
	}
	for name, w := range want {
		text := svgText(t, filepath.Join(dir, name+".svg"))
		for _, s := range w.texts {
			if !strings.Contains(text, s) {
				t.Errorf("%s.svg lacks %q; it has %q", name, s, text)
			}
		}
		colors := pngColors(t, filepath.Join(dir, name+".png"))
		for _, c := range w.colors {
			// A line through the whole figure has some hundred pixels; a legend's alone has fewer.
			if colors[c] < 200 {
				t.Errorf("%s.png has %d pixels of colour %v", name, colors[c], c)
			}
		}
	}
	shade := color.NRGBA{R: 255, G: 241, B: 165, A: 255} // the event's colour, on white
	if n := pngColors(t, filepath.Join(dir, "histogram.png"))[shade]; n < 5000 {
		t.Errorf("the event is marked on %d pixels", n)
	}
	for _, e := range entries {
		if info, err := e.Info(); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v; results are for their owner alone", e.Name(), info.Mode(), err)
		}
	}
}

// A failure to draw is an error, not a verdict without plots.
func TestAnalyzePlotBadDirectory(t *testing.T) {
	t.Parallel()
	d0, d1 := file(t, "d0", strings.Repeat("1\n", 20)), file(t, "d1", strings.Repeat("2\n", 20))
	call(t, "", "analyze", "--d0", d0, "--d1", d1, "--epsilon", "1", "--plot", d0).want(t, exitFailure, fmt.Sprintf("plot: mkdir %s", d0))
}
