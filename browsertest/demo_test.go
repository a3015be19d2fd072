package browsertest

import (
	"fmt"
	"regexp"
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
	longtest.Skip(t) // a minute
	t.Parallel()
	browser.Need(t)
	p := spawn(t, "demo", "--all", "-o", "json", "--keep", "--pg-bindir", pgtest.Start(t).BinDir())
	login := regexp.MustCompile(`and (http://[0-9.:]+) \(log in with the token ([A-Z0-9]+)\)`)
	var at []string
	err := program.Until(t.Context(), func() (bool, error) { // without a time limit of its own
		select {
		case <-p.Ended:
			return false, fmt.Errorf("the demo has ended:\n%s", p.Log)
		default:
			at = login.FindStringSubmatch(p.Log.String())
			return at != nil, nil
		}
	})
	if err != nil {
		t.Fatal(err)
	}
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
