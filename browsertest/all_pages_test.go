package browsertest

import (
	"strings"
	"testing"

	"github.com/dpwatch/dpwatch/browsertest/browser"
	"github.com/dpwatch/dpwatch/internal/longtest"
	"github.com/dpwatch/dpwatch/internal/pgtemp/pgtest"
)

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
		base := s.base()
		for _, path := range paths { // without queries nothing else shows that the ledger is read and the auditor has a status
			s.until(t, path, func() bool { return !strings.Contains(s.get(t, path), "This page cannot be shown") })
		}
		b := browser.Open(t)
		looks := func(path string) {
			b.Go(base + path)
			unfold(b)
			for width, scheme := range map[int64]string{1280: "light", 390: "dark"} { // neither depends on the other
				b.Scheme(scheme)
				b.Size(width, 844)
				for _, v := range b.Axe() {
					t.Errorf("%s, %s, %d wide: %s", path, scheme, width, v)
				}
				if wide := b.Overflow(); wide != "" {
					t.Errorf("%s, %s, %d wide: too wide: %s", path, scheme, width, wide)
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
		check(t, s, append(pagePaths, "/queries/"+id, "/queries/"+id+"/profile"))
	})
	t.Run("empty", func(t *testing.T) {
		t.Parallel()
		check(t, start(t, withLedger, ""), pagePaths)
	})
	t.Run("without a ledger", func(t *testing.T) {
		t.Parallel()
		check(t, start(t, false, ""), pagePaths)
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
	base := s.base()
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
