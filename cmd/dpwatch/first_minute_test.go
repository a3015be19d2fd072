package main

import (
	"fmt"
	"html"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/dpwatch/dpwatch/internal/golden"
	"github.com/dpwatch/dpwatch/internal/longtest"
	"github.com/dpwatch/dpwatch/internal/pgtemp/pgtest"
)

const demoPicture = "../../docs/images/demo.svg"

// TestFirstMinute: the demo shows each planted leak in a line of at most 80 columns without colours, keeps its
// configuration and its log, and the picture in the README shows the same queries and verdicts, in any order. With -update
// it draws the picture. That an honest query raises an alarm, or a leak is not found, has a probability of at most 1e-6.
func TestFirstMinute(t *testing.T) {
	longtest.Scheduled(t) // CI runs make demo, too
	t.Parallel()
	dir, state := filepath.Join(t.TempDir(), "demo"), t.TempDir()
	p := startProgramWith(t, []string{"XDG_STATE_HOME=" + state}, "demo", "--dir", dir, "--pg-bindir", pgtest.Start(t).BinDir())
	<-p.ended
	if code := p.ProcessState.ExitCode(); code != exitDone {
		t.Fatalf("exit code %d\n%s\n%s", code, p.out.String(), p.log.String())
	}
	shown := p.out.String()
	leaks, honest := 0, 0
	for line := range strings.Lines(shown) {
		if n := len([]rune(strings.TrimRight(line, "\n"))); n > 80 || strings.Contains(line, "\x1b") {
			t.Errorf("%d columns: %q", n, line)
		}
		switch {
		case strings.HasPrefix(line, "  x  "):
			leaks++
		case strings.HasPrefix(line, "  ok "):
			honest++
		}
	}
	if leaks != 6 || honest != 2 || !strings.Contains(shown, "\n6 of 6 planted leaks found, 0 false alarms, ") {
		t.Errorf("%d leaks, %d honest queries:\n%s", leaks, honest, shown)
	}
	for name, part := range map[string]string{"dpwatch.yaml": "protected: [public.users", "dpwatch.log": `"privacy violation"`} {
		if text, err := os.ReadFile(filepath.Join(dir, name)); err != nil || !strings.Contains(string(text), part) {
			t.Errorf("%s has no %q: %v", name, part, err)
		}
	}
	if left, err := os.ReadDir(state); err != nil || len(left) > 0 {
		t.Errorf("%v is left for another demo, %v", left, err)
	}
	if golden.Updating() {
		if err := os.WriteFile(demoPicture, drawTerminal(shown), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	picture, err := os.ReadFile(demoPicture)
	if err != nil {
		t.Fatal(err)
	}
	drawn := drawnText.FindAllStringSubmatch(string(picture), -1)
	var lines []string
	for _, found := range drawn {
		lines = append(lines, html.UnescapeString(tags.ReplaceAllString(found[1], "")))
	}
	if got, want := wordsOf(strings.Join(lines, "\n")), wordsOf(shown); !slices.Equal(got, want) {
		t.Errorf("the picture has the lines\n%q, the demo shows\n%q; draw it with -update", got, want)
	}
}

var (
	drawnText = regexp.MustCompile(`(?s)<text [^>]*xml:space[^>]*>(.*?)</text>`)
	tags      = regexp.MustCompile(`<[^>]*>`)
	seconds   = regexp.MustCompile(`[0-9]+ s$`)
)

// wordsOf returns the lines of a text, sorted, without what trials may change: seconds, bounds and causes.
func wordsOf(text string) (all []string) {
	for line := range strings.Lines(text) {
		line = seconds.ReplaceAllString(strings.TrimRight(line, "\n"), "")
		if strings.HasPrefix(line, "  x  ") || strings.HasPrefix(line, "  ok ") {
			line = line[:min(len(line), len("  ok ")+24)]
		}
		if line != "" {
			all = append(all, line)
		}
	}
	slices.Sort(all)
	return all
}

// drawTerminal draws a text as a terminal would show it.
func drawTerminal(text string) []byte {
	lines := strings.Split(strings.TrimSpace("$ make demo\n"+text), "\n")
	const wide, high = 8.2, 18
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%[1]d" role="img" aria-label="The first minute of make demo: six planted leaks are found, two honest queries are not accused">
<style>text { font: 13.6px ui-monospace, Menlo, Consolas, monospace; fill: #d8dee4 } .x { fill: #ff7b72 } .ok { fill: #7ee787 } .quiet { fill: #8b949e }</style>
<rect width="100%%" height="100%%" rx="8" fill="#0d1117"/>
`, int(80*wide)+32, high*len(lines)+28)
	for i, line := range lines {
		shown := html.EscapeString(line)
		for mark, class := range map[string]string{"  x  ": "x", "  ok ": "ok"} {
			if rest, ok := strings.CutPrefix(line, mark); ok {
				shown = fmt.Sprintf(`<tspan class="%s">%s</tspan>%s`, class, mark, html.EscapeString(rest))
			}
		}
		class := ""
		if strings.HasPrefix(line, "     QUERY") || strings.HasPrefix(line, "$") {
			class = ` class="quiet"`
		}
		if kind := "xml:space"; line != "" && !strings.HasPrefix(line, "$") {
			fmt.Fprintf(&b, "<text%s x=\"16\" y=\"%d\" %s=\"preserve\">%s</text>\n", class, 28+high*i, kind, shown)
		} else if line != "" {
			fmt.Fprintf(&b, "<text%s x=\"16\" y=\"%d\">%s</text>\n", class, 28+high*i, shown)
		}
	}
	b.WriteString("</svg>\n")
	return []byte(b.String())
}
