package browsertest

import (
	"regexp"
	"strings"
	"testing"

	"github.com/dpwatch/dpwatch/browsertest/browser"
	"github.com/dpwatch/dpwatch/internal/longtest"
	"github.com/dpwatch/dpwatch/internal/pgtemp/pgtest"
)

// TestPageOf200Groups: the page of a query with 200 groups, which has too little noise, is served and has its groups;
// so is its privacy profile.
func TestPageOf200Groups(t *testing.T) {
	longtest.Skip(t) // half a minute
	t.Parallel()
	browser.Need(t)
	s := start(t, withLedger, "")
	conn := pgtest.Connect(t, s.through())
	execute(t, conn, "/*dp_epsilon='0.5'*/ SELECT g, noisy(count(p.id), 0.2) FROM generate_series(1, 200) AS g LEFT JOIN people AS p ON p.id % 200 + 1 = g GROUP BY g ORDER BY g")
	decided := regexp.MustCompile(`"id":"([0-9a-f]{12})"`)
	var id string
	s.until(t, "a verdict in the ledger", func() bool {
		body := s.get(t, "/api/status")
		if m := decided.FindStringSubmatch(body); m != nil {
			id = m[1]
		}
		return strings.Contains(body, `"state":"decided"`) && strings.Contains(body, `"unsaved_audits":0,"waiting":0,"lost":0`)
	})
	b := browser.Open(t) // a status other than 200 is a fault
	logIn(b, s.base(), s.token)
	b.Go(s.base() + "/queries/" + id)
	if text := b.Text("h1"); !strings.HasPrefix(text, "Leaks ") {
		t.Errorf("%q", text)
	}
	var groups struct {
		Rows int
		Text string
	}
	b.Eval(`({Rows: document.querySelectorAll("[data-live=groups] tbody tr").length, Text: document.querySelector("[data-live=groups]").textContent})`, &groups)
	if groups.Rows != 200 || !strings.Contains(groups.Text, "188 more are in the table") {
		t.Errorf("%+v", groups)
	}
	b.Go(s.base() + "/queries/" + id + "/profile")
	if text := b.Text("main"); !strings.Contains(text, "The privacy profile") {
		t.Errorf("the profile:\n%s", text)
	}
}
