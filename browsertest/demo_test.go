package browsertest

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/dpwatch/dpwatch/browsertest/browser"
	"github.com/dpwatch/dpwatch/internal/golden"
	"github.com/dpwatch/dpwatch/internal/longtest"
	"github.com/dpwatch/dpwatch/internal/pgtemp/pgtest"
	"github.com/dpwatch/dpwatch/internal/program"
)

// TestDemo logs in to a demo that is kept running, and logs how long the first page takes. With -update it writes the
// pictures of docs/pages.md.
func TestDemo(t *testing.T) {
	longtest.Scheduled(t) // a minute
	t.Parallel()
	browser.Need(t)
	p := spawn(t, "demo", "--all", "-o", "json", "--keep", "--pg-bindir", pgtest.Start(t).BinDir())
	at := said(t, p, `and (http://[0-9.:]+) \(log in with the token ([A-Z0-9]+)\)`)
	b := browser.Open(t)
	logIn(b, at[1], at[2])
	var paint float64
	b.Wait(`performance.getEntriesByName("first-contentful-paint").length > 0`)
	b.Eval(`performance.getEntriesByName("first-contentful-paint")[0].startTime`, &paint)
	t.Logf("the overview's first paint after %.0f ms", paint)
	var path string
	b.Eval(`[...document.querySelectorAll(".card a")].find((a) => a.textContent.includes("round(noisy")).getAttribute("href")`, &path)
	if !golden.Updating() {
		return
	}
	b.Size(1000, 700)
	b.Screenshot("../docs/images/overview.png")
	b.Go(at[1] + path)
	b.Size(1000, 1500)
	b.Screenshot("../docs/images/query.png")
}

// said waits until a program writes something, and returns its submatches.
func said(t *testing.T, p *program.Process, pattern string) (match []string) {
	t.Helper()
	want := regexp.MustCompile(pattern)
	err := program.Until(t.Context(), func() (bool, error) { // without a time limit of its own
		match = want.FindStringSubmatch(p.Log.String())
		select {
		case <-p.Ended:
			return false, fmt.Errorf("the program has ended:\n%s", p.Log)
		default:
			return match != nil, nil
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	return match
}

// TestDemoReport writes the report of a demo, whose findings show the answers without values. With -update it writes the
// pictures of docs/reports.md.
func TestDemoReport(t *testing.T) {
	longtest.Scheduled(t) // half a minute
	t.Parallel()
	browser.Need(t)
	dir := t.TempDir()
	p := spawn(t, "demo", "--dir", dir, "--keep", "--pg-bindir", pgtest.Start(t).BinDir())
	said(t, p, `still running`)
	path, err := build()
	if err != nil {
		t.Fatal(err)
	}
	report, key := filepath.Join(dir, "report"), filepath.Join(dir, "report.key")
	for _, args := range [][]string{{"--new-key", key}, {"--all", "--config", filepath.Join(dir, "dpwatch.yaml"), "--key", key, "--dir", report}} {
		if out, err := exec.Command(path, append([]string{"report"}, args...)...).CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	b := browser.Open(t)
	b.Go("file://" + filepath.Join(report, "report.html"))
	b.Print()
	b.Size(printedWidth, printedHeight)
	if wide := b.Overflow(); wide != "" {
		t.Errorf("printed: too wide: %s", wide)
	}
	if text := b.Text("main"); !strings.Contains(text, "6 leak more than they claim") || strings.Count(text, "The answers with and without the person") < 3 || !strings.Contains(text, "answers in their order") {
		t.Errorf("the report:\n%s", text)
	}
	if !golden.Updating() {
		return
	}
	const margin = 24
	var bottom float64
	b.Size(printedWidth+2*margin, printedHeight)
	b.Eval(fmt.Sprintf(`document.body.style.padding = "%dpx"`, margin), nil)
	b.Eval(`document.querySelector(".signatures").getBoundingClientRect().bottom`, &bottom)
	b.Size(printedWidth+2*margin, int64(bottom)+margin/2)
	b.Screenshot("../docs/images/report.png")
	b.Eval(`(() => { const all = [...document.querySelectorAll("section.whole")], one = all.find((s) => s.textContent.includes("sum_unclipped"))
		all.filter((s) => s !== one).forEach((s) => s.remove()); one.scrollIntoView(); return one.getBoundingClientRect().height })()`, &bottom)
	b.Size(printedWidth+2*margin, int64(bottom)+margin/2)
	b.Eval(`document.querySelector("section.whole").scrollIntoView()`, nil)
	b.Screenshot("../docs/images/finding.png")
}
