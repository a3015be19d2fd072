package audit

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
		a, b := lookAt(seed, capture.Query{SQL: base}), lookAt(seed, capture.Query{SQL: c.sql})
		if (a.outline == b.outline) != c.outline || (a.text == b.text) != c.text {
			t.Errorf("%s: outline the same: %t, text the same: %t", name, a.outline == b.outline, a.text == b.text)
		}
	}
	if lookAt(seed, capture.Query{SQL: base}).outline == lookAt(seed, capture.Query{SQL: base, User: "x"}).outline {
		t.Error("two users' texts have one outline")
	}
}

// TestLexeme: a lexeme has at least one byte and at most the rest of the text, and an unterminated one extends to the end:
// the text is read once.
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

func TestRecent(t *testing.T) {
	t.Parallel()
	r := recent[int, int]{n: 10}
	for i := range 1000 {
		r.put(i, i)
		if _, ok := r.get(0); !ok { // marks it as used
			t.Fatalf("after %d keys the one that is used is forgotten", i)
		}
		if len(r.young)+len(r.old) > 20 {
			t.Fatalf("%d keys", len(r.young)+len(r.old))
		}
	}
	if v, ok := r.get(995); !ok || v != 995 {
		t.Error("a late key is forgotten")
	}
}

// TestCoverage: exact for few queries, within five standard errors for many.
func TestCoverage(t *testing.T) {
	t.Parallel()
	var c coverage
	key := func(i int) string {
		h := uint64(i+1) * 0x9E3779B97F4A7C15
		h ^= h >> 29
		h *= 0xBF58476D1CE4E5B9
		h ^= h >> 32
		const digits = "0123456789abcdef"
		var b [16]byte
		for j := range b {
			b[j] = digits[h>>(60-4*j)&15]
		}
		return string(b[:])
	}
	if n, share := c.queries(); n != 0 || share != 1 {
		t.Errorf("without queries %v, %v", n, share)
	}
	for i := range 500 {
		c.see(key(i), i%4 == 0)
		c.see(key(i), i%4 == 0)
	}
	if n, share := c.queries(); n != 500 || share != .25 {
		t.Errorf("%v queries, share %v; want 500 and a quarter", n, share)
	}
	c.lose(key(0))
	if _, share := c.queries(); share != 124./500 {
		t.Errorf("share %v after one lost its audit", share)
	}
	for i := range 100_000 {
		c.see(key(i), i%4 == 0)
	}
	if n, share := c.queries(); n < 85_000 || n > 115_000 || share < .18 || share > .32 {
		t.Errorf("%v queries, share %v; want about 100,000 and a quarter", n, share)
	}
}
