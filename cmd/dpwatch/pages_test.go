package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/chromedp/chromedp/kb"

	"github.com/dpwatch/dpwatch/internal/browser"
	"github.com/dpwatch/dpwatch/internal/golden"
	"github.com/dpwatch/dpwatch/internal/longtest"
	"github.com/dpwatch/dpwatch/internal/pgtemp/pgtest"
)

// startPages starts a sidecar, with more keys of the configuration, with a violation and an honest query, both decided,
// and returns the id of the first. The honest one is accused with a probability of at most 10^-6.
func startPages(t *testing.T, extra string) (s *sidecar, id string) {
	t.Helper()
	s = startSidecar(t, "LEDGER, ADMIN ROLES"+extra)
	conn := s.connect(t)
	exec0(t, conn, "/*dp_epsilon='0.5'*/ SELECT noisy(count(*), 0.2) FROM people WHERE id > $1", -1717171717)
	exec0(t, conn, "/*dp_epsilon='0.5'*/ SELECT noisy(count(*), 4) FROM people")
	s.until(t, "two verdicts in the ledger", func() bool {
		all := s.audits(t)
		_, body := s.get(t, "/api/status")
		if len(all) != 2 || all[0].State != "decided" || all[1].State != "decided" {
			return false
		}
		id = all[0].ID
		return strings.Contains(body, `"unsaved_audits":0,"waiting":0,"lost":0`)
	})
	return s, id
}

// logIn logs in with a token.
func logIn(b *browser.Tab, base, token string) {
	b.Go(base + "/login")
	b.Fill("#token", token)
	b.Click("form.login button")
}

// TestPages: a person logs in, finds which query leaks, how badly and why, and an operator accepts and reproduces it; a
// viewer sees no values and can change nothing.
func TestPages(t *testing.T) {
	t.Parallel()
	browser.Need(t)
	var accepts atomic.Bool
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if !accepts.Load() {
			w.WriteHeader(http.StatusGone) // no further attempt is made
		}
	}))
	t.Cleanup(receiver.Close)
	s, id := startPages(t, "\nalerts: {receivers: [{name: oncall, type: webhook, url: "+receiver.URL+", secret: key, timeout: 5m}]}\n")
	base := "http://" + s.admin
	b := browser.Open(t)

	b.Go(base + "/queries?sort=bound")
	logInText := b.Text("h1")
	b.Fill("#token", "not a token")
	b.Click("form.login button")
	if text := b.Text("[role=alert]"); logInText != "Log in to see what is audited." || !strings.Contains(text, "none of the tokens") {
		t.Errorf("%q, then %q", logInText, text)
	}
	b.Fill("#token", s.viewer)
	b.Click("form.login button")
	if text := b.Text("h1"); !strings.HasPrefix(text, "Queries") {
		t.Errorf("after the login: %q", text)
	}
	b.Click("nav a[href='/']")
	if text := b.Text("h1"); text != "1 query leaks more than claimed." {
		t.Errorf("overview: %q", text)
	}
	checkKeyboard(t, b)
	b.Click(".card h3 a")
	if text := b.Text("h1"); !strings.HasPrefix(text, "This query leaks ") || !strings.HasSuffix(text, "; it claims 0.5.") {
		t.Errorf("query: %q", text)
	}
	answers := b.Text(".answers")
	for _, want := range []string{"How bad?", "What gives it away?", "Why, probably?", "Who?", "What now?", "Certified at confidence", "Likely"} {
		if !strings.Contains(answers, want) {
			t.Errorf("no %q in the answers:\n%s", want, answers)
		}
	}
	var target string
	b.Eval(`document.querySelector(".answers a[href^='/causes#']").getAttribute("href")`, &target)
	b.Click(".answers a[href^='/causes#']")
	var there bool
	if b.Eval(`document.querySelector(location.hash) !== null`, &there); !there {
		t.Errorf("%s leads to no cause", target)
	}
	b.Go(base + "/queries/" + id)
	var html string
	b.Eval("document.documentElement.outerHTML", &html)
	if strings.Contains(html, "1717171717") || strings.Contains(html, "noisy(count(*), 0.2)") || strings.Contains(html, "<form method=\"post\" action=\"/queries") {
		t.Errorf("a viewer's page has literals or actions:\n%s", html)
	}
	var status int
	b.Expect("403")
	b.Eval(fmt.Sprintf(`fetch('/queries/%s/accept', {method: 'POST', body: new URLSearchParams({until: '2099-12-31', reason: 'x'})}).then((r) => r.status)`, id), &status)
	if status != 403 {
		t.Errorf("a viewer's acceptance: %d", status)
	}
	b.Click(".who button")
	logIn(b, base, s.token)

	s.until(t, "a message failed for good", func() bool {
		_, body := s.get(t, "/alerts")
		return strings.Contains(body, "the receiver answered 410 Gone")
	})
	b.Go(base + "/alerts")
	if text := b.Text("main"); !strings.Contains(text, "0 wait, 1 failed") || !strings.Contains(text, "oncall") || strings.Contains(text, "1717171717") {
		t.Errorf("alerts:\n%s", text)
	}
	accepts.Store(true)
	b.Click("form[action$='/retry'] button")
	if text := b.Text("main"); !strings.Contains(text, "The failed messages are sent again.") {
		t.Errorf("after the retry:\n%s", text)
	}
	s.until(t, "the message arrives", func() bool {
		_, body := s.get(t, "/alerts")
		return strings.Contains(body, "None: every message arrived.")
	})

	b.Go(base + "/queries/" + id)
	if text := b.Text("main"); !strings.Contains(text, "noisy(count(*), 0.2) FROM people WHERE id > $1") || !strings.Contains(text, `"d1".people`) || !strings.Contains(text, "The answers with and without the person") {
		t.Errorf("an auditor's page:\n%s", text)
	}
	b.Fill("input[name=until]", "2099-12-31")
	b.Fill("input[name=reason]", "OPS-411 <b>&</b>")
	b.Click("form[action$='/accept'] button")
	if text := b.Text("main"); !strings.Contains(text, "The violation is accepted.") || !strings.Contains(text, "accepted until 2100-01-01") || !strings.Contains(text, "OPS-411 <b>&</b>") || !strings.Contains(text, "ann") {
		t.Errorf("after the acceptance:\n%s", text)
	}
	b.Go(base + "/queries?status=accepted")
	if text := b.Text("main"); !strings.Contains(text, "1 query.") || !strings.Contains(text, "accepted violation") {
		t.Errorf("accepted queries:\n%s", text)
	}
	b.Go(base + "/queries/" + id)
	b.Fill("form[action$='/revoke'] input[name=reason]", "cancelled")
	b.Click("form[action$='/revoke'] button")
	if text := b.Text("main"); !strings.Contains(text, "The acceptance is ended.") {
		t.Errorf("after the revocation:\n%s", text)
	}
	b.Click("form[action$='/reproduce'] button")
	b.Wait(`document.querySelector("[data-live=rest]").textContent.includes("confirmed: violation")`) // the page follows the status
	b.Click("form[action$='/reaudit'] button")
	if text := b.Text("main"); !strings.Contains(text, "The audit begins again") {
		t.Errorf("after the wish for a new audit:\n%s", text)
	}
	b.Wait(`document.querySelector("[data-live=rest]").textContent.includes("an operator asked for it") && document.querySelector("[data-live=rest]").textContent.includes("The evidence began 2 times") && document.querySelector("[data-live=state]").textContent.includes("violation")`)
	b.Click("nav a[href='/jobs']")
	b.Click("form[action='/jobs/pause'] button")
	if text := b.Text("main"); !strings.Contains(text, "Replays are paused") {
		t.Errorf("after the pause:\n%s", text)
	}
	b.Click("form[action='/jobs/resume'] button")
	b.Fill("form[action='/jobs/deploy'] input[name=label]", "v2")
	b.Click("form[action='/jobs/deploy'] button")
	if text := b.Text("main"); !strings.Contains(text, "All queries are audited again") {
		t.Errorf("after the deploy:\n%s", text)
	}
	b.Go(base + "/queries/" + id)
	b.Wait(`document.querySelector("[data-live=rest]").textContent.includes("The evidence began 3 times")`)
	b.Expect("400")
	var answer string
	b.Eval(`fetch("/alerts/none/retry", {method: "POST"}).then((r) => r.text())`, &answer)
	if !strings.Contains(answer, "no alert") {
		t.Errorf("messages of an alert that is not there are sent again:\n%s", answer)
	}
	b.Expect("404")
	b.Go(base + "/queries/dead")
	if text := b.Text("main"); !strings.Contains(text, `no audit "dead"`) {
		t.Errorf("a query that is not there:\n%s", text)
	}
}

// checkKeyboard goes through a page with the Tab key: the first stop leads past the menu, every link and button is a
// stop, and the focus is visible at each.
func checkKeyboard(t *testing.T, b *browser.Tab) {
	t.Helper()
	var want, skipped int
	b.Eval(`document.querySelectorAll("a[href], button, input, select, summary, [tabindex='0']").length`, &want)
	b.Eval(`document.activeElement.blur()`, nil)
	seen := map[string]bool{}
	for i := range want {
		b.Key(kb.Tab)
		var stop struct {
			Name    string
			Visible bool
		}
		b.Eval(`(() => { const e = document.activeElement, box = e.getBoundingClientRect(), style = getComputedStyle(e)
			const all = [...document.querySelectorAll("*")]
			return {Name: all.indexOf(e) + " " + e.tagName + " " + e.textContent.slice(0, 40), Visible: style.outlineStyle !== "none" && parseFloat(style.outlineWidth) > 0 && box.width > 0 && box.right > 0} })()`, &stop)
		if !stop.Visible {
			t.Errorf("stop %d, %s: the focus is not visible", i+1, stop.Name)
		}
		if i == 0 && !strings.Contains(stop.Name, "Skip to the content") {
			t.Errorf("the first stop is %s", stop.Name)
		}
		seen[stop.Name] = true
	}
	if len(seen) != want {
		t.Errorf("%d stops, want %d: every link, button and field", len(seen), want)
	}
	b.Eval(`document.querySelector(".skip").focus()`, nil)
	b.Key(kb.Enter)
	b.Eval(`document.activeElement.id === "main" ? 1 : 0`, &skipped)
	if skipped != 1 {
		t.Error("the link past the menu does not lead to the content")
	}
}

// pagePaths are all pages but that of one query.
var pagePaths = []string{"/", "/queries", "/queries?status=accepted", "/coverage", "/coverage?since=1h", "/budgets", "/alerts", "/jobs", "/settings", "/causes"}

// TestPagesForAll: every page, with content and empty, in both colour schemes, on a desktop and a phone, has nothing
// that axe-core finds or that is wider than the window, and can be used with the keyboard.
func TestPagesForAll(t *testing.T) {
	longtest.Skip(t)
	t.Parallel()
	browser.Need(t)
	browser.NeedAxe(t)
	check := func(t *testing.T, s *sidecar, paths []string) {
		base := "http://" + s.admin
		b := browser.Open(t)
		looks := func(path string) {
			b.Go(base + path)
			for _, scheme := range []string{"light", "dark"} {
				b.Scheme(scheme)
				for _, width := range []int64{1280, 390} {
					b.Size(width, 844)
					for _, v := range b.Axe() {
						t.Errorf("%s, %s, %d wide: %s", path, scheme, width, v)
					}
					if wide := b.Overflow(); wide != "" {
						t.Errorf("%s, %s, %d wide: too wide: %s", path, scheme, width, wide)
					}
				}
			}
		}
		looks("/login")
		logIn(b, base, s.token)
		for _, path := range paths {
			looks(path)
		}
	}
	t.Run("full", func(t *testing.T) {
		t.Parallel()
		s, id := startPages(t, "")
		check(t, s, append(pagePaths, "/queries/"+id))
	})
	t.Run("empty", func(t *testing.T) {
		t.Parallel()
		check(t, startSidecar(t, "LEDGER, ADMIN ROLES"), pagePaths)
	})
	t.Run("without a ledger", func(t *testing.T) {
		t.Parallel()
		check(t, startSidecar(t, "ADMIN ROLES"), pagePaths)
	})
}

// TestPagesOfManyQueries: 10,000 queries are searched, filtered and paged through without a query missing or twice.
func TestPagesOfManyQueries(t *testing.T) {
	longtest.Skip(t)
	t.Parallel()
	browser.Need(t)
	s, _ := startPages(t, "")
	pgtest.Exec(t, s.direct, `INSERT INTO dpwatch_ledger.queries (engine, key, shape, fingerprint, summary, epsilon, delta, claim_source, claim_rule, executions, first_seen, last_seen)
		SELECT q.engine, md5(g::text) || md5(g::text), 's', 'f' || g, 'SELECT synthetic_' || g || ' 100% _sure', 1, 0, 'rule', '', g, now(), now() FROM generate_series(1, 10000) g, (SELECT engine FROM dpwatch_ledger.queries LIMIT 1) q`)
	b := browser.Open(t)
	base := "http://" + s.admin
	logIn(b, base, s.token)
	b.Go(base + "/queries")
	if text := b.Text("[role=status]"); text != "1 to 50 of 10002 queries." {
		t.Errorf("%q", text)
	}
	b.Fill("input[name=search]", "100% _SURE")
	b.Click("form[role=search] button")
	seen := map[string]bool{}
	for {
		var ids []string
		b.Eval(`[...document.querySelectorAll('.list a')].map((a) => a.getAttribute('href'))`, &ids)
		for _, id := range ids {
			if seen[id] {
				t.Errorf("%s is listed twice", id)
			}
			seen[id] = true
		}
		var next bool
		b.Eval(`!!document.querySelector('a[rel=next]')`, &next)
		if !next {
			break
		}
		b.Click("a[rel=next]")
	}
	if len(seen) != 10000 {
		t.Errorf("%d queries on all pages, want 10000", len(seen))
	}
	for search, want := range map[string]string{"synthetic_77 ": "1 query.", "%": "1 to 50 of 10000 queries.", "' OR 1=1 --": "0 queries.", "people": "2 queries."} {
		b.Go(base + "/queries")
		b.Fill("input[name=search]", search)
		b.Click("form[role=search] button")
		if text := b.Text("[role=status]"); text != want {
			t.Errorf("search %q: %q, want %q", search, text, want)
		}
	}
	for sort := range map[string]bool{"bound": true, "claim": true, "trials": true, "executions": true, "last": true, "first": true, "summary": true} {
		b.Go(base + "/queries?sort=" + sort)
		if text := b.Text("[role=status]"); text != "1 to 50 of 10002 queries." {
			t.Errorf("sort %s: %q", sort, text)
		}
	}
	b.Expect("400")
	b.Go(base + "/queries?sort=nothing")
	if text := b.Text("main"); !strings.Contains(text, "cannot be sorted") {
		t.Errorf("%q", text)
	}
}

// photograph writes the pictures of docs/pages.md with -update, and always logs how long the first page takes on a demo
// that is kept running.
func photograph(t *testing.T, p *process) {
	t.Helper()
	if browser.Path() == "" {
		t.Log("SKIPPED: the pages of the demo in a browser: there is no Chromium")
		return
	}
	at := regexp.MustCompile(`and (http://[0-9.:]+) \(log in with the token ([A-Z0-9]+)\)`).FindStringSubmatch(p.log.String())
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
	b.Screenshot("../../docs/images/overview.png")
	b.Go(at[1] + path)
	b.Size(1000, 1500)
	b.Screenshot("../../docs/images/query.png")
}
