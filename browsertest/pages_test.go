package browsertest

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/chromedp/chromedp/kb"

	"github.com/dpwatch/dpwatch/browsertest/browser"
)

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
	s, id := startPages(t, "\nalerts: {receivers: [{name: oncall, type: webhook, url: "+receiver.URL+", secret: key}]}\n")
	base := s.base()
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
	b.Click(".card a")
	if text := b.Text("h1"); !strings.HasPrefix(text, "Leaks ") || !strings.HasSuffix(text, ", claims 0.5.") {
		t.Errorf("query: %q", text)
	}
	story := b.Text("main")
	for _, want := range []string{
		"claim 0.5", "proven: ", "Confidence 0.99", "An attacker goes from 50 % to at least ", "What an analyst sees (likely)", "Why (likely)", "Fix", "Since",
		"1 run, last less than a minute ago, confirmed less than a minute ago", "Evidence and bound", "Privacy profile", "People and clients", "History", "What the audit does not prove",
	} {
		if !strings.Contains(story, want) {
			t.Errorf("no %q on the page:\n%s", want, story)
		}
	}
	var target string
	b.Eval(`document.querySelector(".story a[href^='/causes#']").getAttribute("href")`, &target)
	b.Click(".story a[href^='/causes#']")
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
		body := s.get(t, "/alerts")
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
		body := s.get(t, "/alerts")
		return strings.Contains(body, "None: every message arrived.")
	})

	b.Go(base + "/queries/" + id)
	unfold(b)
	b.Wait(`[...document.querySelectorAll(".folded figure")].some((f) => f.textContent.includes("The privacy profile"))`) // fetched when it is opened
	if text := b.Text("main"); !strings.Contains(text, "claimed epsilon: 0.5") {
		t.Errorf("the privacy profile has no claim:\n%s", text)
	}
	if text := b.Text("main"); !strings.Contains(text, "noisy(count(*), 0.2) FROM people WHERE id > $1") || !strings.Contains(text, `"d1".people`) || !strings.Contains(text, "The answers with and without the person") {
		t.Errorf("an auditor's page:\n%s", text)
	}
	b.Fill("input[name=until]", "2099-12-31")
	b.Fill("input[name=reason]", "OPS-411 <b>&</b>")
	b.Click("form[action$='/accept'] button")
	unfold(b)
	if text := b.Text("main"); !strings.Contains(text, "The violation is accepted.") || !strings.Contains(text, "accepted until 2100-01-01") || !strings.Contains(text, "OPS-411 <b>&</b>") || !strings.Contains(text, "ann") {
		t.Errorf("after the acceptance:\n%s", text)
	}
	b.Go(base + "/queries?status=accepted")
	if text := b.Text("main"); !strings.Contains(text, "1 query.") || !strings.Contains(text, "accepted violation") {
		t.Errorf("accepted queries:\n%s", text)
	}
	b.Go(base + "/queries/" + id)
	unfold(b)
	b.Fill("form[action$='/revoke'] input[name=reason]", "cancelled")
	b.Click("form[action$='/revoke'] button")
	if text := b.Text("main"); !strings.Contains(text, "The acceptance is ended.") {
		t.Errorf("after the revocation:\n%s", text)
	}
	b.Click("form[action$='/reproduce'] button")
	b.Wait(`document.querySelector("[data-live=rest]").textContent.includes("confirmed: violation")`) // the page follows the status
	unfold(b)
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

// unfold opens all details of a page.
func unfold(b *browser.Tab) {
	b.Eval(`document.querySelectorAll("details").forEach((d) => { d.open = true })`, nil)
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
