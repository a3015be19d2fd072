package sqltext

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// TestQuickCalls: what is found without reading tokens includes all that reading them finds.
func TestQuickCalls(t *testing.T) {
	t.Parallel()
	pieces := []string{
		"SELECT", "f", "G", "count", "in", "into", "as", "from", "set_config", "current_setting", "query_to_xml", `"h"`, `"a""b"`, `U&"x"`, "'s'", "'f('", "E'\\''", "$1", "$$", "$q$", "é",
		"(", "(", "(", ")", ".", ",", " ", " ", "\n", "--", "-- f", "/*", "*/", "&", "=", "1", "x1", "function",
	}
	quick := 0
	rnd := rand.New(rand.NewPCG(1, 2))
	for range 200_000 {
		var b strings.Builder
		for range 1 + rnd.IntN(9) {
			b.WriteString(pieces[rnd.IntN(len(pieces))])
			if rnd.IntN(3) == 0 {
				b.WriteByte(' ')
			}
		}
		sql := b.String()
		calls, ok := quickCalls(sql)
		if !ok {
			continue
		}
		quick++
		r := codeReader{parser: newParser(sql, 0)}
		r.read()
		missed := slices.ContainsFunc(r.code.Calls, func(name string) bool { return !slices.Contains(calls, name) })
		if missed || r.code.Any || !r.settings.None() {
			t.Fatalf("%q: found %q, the tokens show %+v %+v", sql, calls, r.code.Doubt, r.settings)
		}
	}
	if quick < 50_000 {
		t.Errorf("only %d texts were read quickly", quick)
	}
}
