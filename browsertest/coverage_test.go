package browsertest

import (
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/dpwatch/dpwatch/browsertest/browser"
)

// TestCoverage: a statement that is not audited is on the page of the coverage, without its constants, and the page is
// not wider than the window of a desktop or a phone.
func TestCoverage(t *testing.T) {
	t.Parallel()
	browser.Need(t)
	s := start(t, true, "")
	cfg, err := pgx.ParseConfig(s.through())
	if err != nil {
		t.Fatal(err)
	}
	cfg.RuntimeParams["application_name"] = "tableau"
	conn, err := pgx.ConnectConfig(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	execute(t, conn, "CREATE FUNCTION unlisted(text) RETURNS text LANGUAGE sql VOLATILE AS 'SELECT $1'")
	execute(t, conn, "SELECT unlisted('SECRETQXZ') FROM people WHERE id < 918273645")
	s.until(t, "the statement is in the coverage", func() bool { return strings.Contains(s.get(t, "/coverage?since=1h"), "tableau") })
	b := browser.Open(t)
	logIn(b, s.base(), s.viewer)
	b.Go(s.base() + "/coverage?since=1h")
	for _, width := range []int64{1280, 390} {
		b.Size(width, 844)
		if wide := b.Overflow(); wide != "" {
			t.Errorf("%d wide: too wide: %s", width, wide)
		}
	}
	text := b.Text("main")
	if !strings.Contains(text, "application tableau") || !strings.Contains(text, "SELECT unlisted(?) FROM people WHERE id < ?") || strings.Contains(text, "SECRETQXZ") || strings.Contains(text, "918273645") {
		t.Errorf("the page shows:\n%s", text)
	}
}
