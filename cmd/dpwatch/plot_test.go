package main

import (
	"bytes"
	"encoding/xml"
	"errors"
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

func TestAnalyzePlot(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(3, 5))
	dir := filepath.Join(t.TempDir(), "plots")
	d0, d1 := file(t, "d0", laplace(rng, 1000, 0, 1)), file(t, "d1", laplace(rng, 1000, 1, 1))
	// True epsilon 1, claim 0.3: detected within some 100 pairs.
	call(t, "", "analyze", "--d0", d0, "--d1", d1, "--epsilon", "0.3", "--plot", dir).want(t, exitViolation)

	want := map[string][]string{
		"histogram": {"The answers with and without the person, column value.", "answer", "kept trials", "D0", "D1", "event, likelier on D"},
		"wealth":    {"Evidence against the claim", "pairs of trials", "log-wealth (nats)", "wealth", "violation, ln(1/alpha)", "1000"},
		"bound":     {"Certified lower bound", "pairs of trials", "epsilon", "lower bound", "claim", "1000"},
		"profile":   {"Privacy profile: certified at least", "epsilon", "delta"},
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != len(want) {
		t.Fatalf("%d files, %v; want an SVG of each of %d figures", len(entries), err, len(want))
	}
	for name, texts := range want {
		text := svgText(t, filepath.Join(dir, name+".svg"))
		for _, s := range texts {
			if !strings.Contains(text, s) {
				t.Errorf("%s.svg lacks %q; it has %q", name, s, text)
			}
		}
	}
	for _, e := range entries {
		if info, err := e.Info(); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v; results are for their owner alone", e.Name(), info.Mode(), err)
		}
	}
}

// TestAnalyzePlotBadDirectory: the verdict does not depend on whether the plots can be written.
func TestAnalyzePlotBadDirectory(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(3, 5))
	d0, d1 := file(t, "d0", laplace(rng, 1000, 0, 1)), file(t, "d1", laplace(rng, 1000, 1, 1))
	call(t, "", "analyze", "--d0", d0, "--d1", d1, "--epsilon", "0.3", "--plot", d0).want(t, exitViolation, "the plots were not written: plot: mkdir "+d0)
	call(t, "", "analyze", "--d0", d0, "--d1", d1, "--epsilon", "0.3", "--partition", "quantile:8", "--plot", d0).want(t, exitViolation, "the plots were not written: plot: mkdir "+d0)
}
