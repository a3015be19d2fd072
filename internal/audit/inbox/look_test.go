package inbox

import (
	"hash/maphash"
	"strings"
	"testing"

	"github.com/dpwatch/dpwatch/internal/capture"
)

func TestLookAt(t *testing.T) {
	t.Parallel()
	seed := maphash.MakeSeed()
	base := "SELECT count(t1.id) AS c1 FROM users t1 WHERE id IN (1, 2) AND name = 'a'"
	for name, c := range map[string]struct {
		sql           string
		outline, text bool // whether they are equal
	}{
		"itself":      {base, true, true},
		"comments":    {base + " /* x /* y */ */ -- z", true, true},
		"white space": {strings.ReplaceAll(base, " ", "\n  "), true, true},
		"digits":      {strings.ReplaceAll(base, "1", "17"), true, false},
		"string":      {strings.ReplaceAll(base, "'a'", "'bc'"), true, false},
		"list":        {strings.ReplaceAll(base, "1, 2", "1, 2, 3, 4"), true, false},
		"column":      {strings.ReplaceAll(base, "name", "mail"), false, false},
		"condition":   {base + " OR true", false, false},
		"never ended": {base + " /* x", true, true},
		"quote":       {base + " '", false, false},
	} {
		a, b := LookAt(seed, capture.Query{SQL: base}), LookAt(seed, capture.Query{SQL: c.sql})
		if (a.Outline == b.Outline) != c.outline || (a.Text == b.Text) != c.text {
			t.Errorf("%s: outline the same: %t, text the same: %t", name, a.Outline == b.Outline, a.Text == b.Text)
		}
	}
	if LookAt(seed, capture.Query{SQL: base}).Outline == LookAt(seed, capture.Query{SQL: base, User: "x"}).Outline {
		t.Error("two users' texts have one outline")
	}
}

// TestLexeme: a lexeme has at least one byte and at most the rest of the text, and an unterminated one extends to the
// end: the text is read once.
func TestLexeme(t *testing.T) {
	t.Parallel()
	deep := strings.Repeat("/*", 1000)
	for sql, want := range map[string]int{
		deep: 1, deep + strings.Repeat("*/", 1000): 1, deep + "*/": 1, "'" + strings.Repeat("x", 1000): 1,
		strings.Repeat("7", 1000): 1, "--" + strings.Repeat("-", 1000): 1, "/": 1, "-": 1, "'": 1, "''": 1, "/*": 1, "/*/": 1, "a1-b": 4, "1--\n2": 4,
	} {
		pieces := 0
		for rest := sql; rest != ""; pieces++ {
			n, _ := lexeme(rest)
			if n < 1 || n > len(rest) {
				t.Fatalf("%.10q: a piece of %d bytes of %d", sql, n, len(rest))
			}
			rest = rest[n:]
		}
		if pieces != want {
			t.Errorf("%.10q: %d pieces, want %d", sql, pieces, want)
		}
	}
}
