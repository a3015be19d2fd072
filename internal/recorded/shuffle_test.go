package recorded_test

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dpwatch/dpwatch/internal/outcome"
	"github.com/dpwatch/dpwatch/internal/recorded"
)

// spell formats everything in a result. Its own printed form withholds values.
func spell(o outcome.Outcome) string {
	b := fmt.Appendf(nil, "%s %v", o.SQLState, o.Columns)
	for _, row := range o.Rows {
		for _, v := range row {
			b = fmt.Appendf(b, " %d %v %q", v.Kind, v.Num, v.Text)
		}
		b = append(b, '/')
	}
	return string(b)
}

// TestShuffle: the results are the same, in another order, which depends on the seed, and each file has an order of its
// own.
func TestShuffle(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name string, lines []string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(strings.Join(lines, "\n")+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	var one, two []string
	for i := range 500 {
		one = append(one, fmt.Sprintf(`{"columns":["k","x"],"rows":[["a",%d],["b",null],[true,0.5]]}`, i))
		two = append(two, fmt.Sprintf(`{"columns":["x"],"rows":[[%d]]}`, i))
	}
	one[7], two[9] = `{"error":"22012"}`, `{"columns":["x"],"rows":[]}`
	d0, d1 := write("d0", one), write("d1", two)
	read := func(seed uint64) (inOrder, shuffled [2][]string) { // formatted, because a result is valid until the next one
		p, err := recorded.Open(d0, d1, recorded.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer p.Close()
		s, err := recorded.Shuffle(p, seed, func(a, b outcome.Outcome) {
			inOrder[0], inOrder[1] = append(inOrder[0], spell(a)), append(inOrder[1], spell(b))
		})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		for {
			a, b, err := s.Next()
			if errors.Is(err, io.EOF) {
				return inOrder, shuffled
			}
			if err != nil {
				t.Fatal(err)
			}
			shuffled[0], shuffled[1] = append(shuffled[0], spell(a)), append(shuffled[1], spell(b))
		}
	}
	first, a := read(1)
	_, again := read(1)
	_, b := read(2)
	if !cmp.Equal(a, again) {
		t.Error("the same seed gives another order")
	}
	if cmp.Equal(a, b) || cmp.Equal(a, first) {
		t.Error("the order does not depend on the seed, or is that of the files")
	}
	positions := func(all []string, w int) (at []int) {
		for _, o := range all {
			at = append(at, slices.Index(first[w], o))
		}
		return at
	}
	p0, p1 := positions(a[0], 0), positions(a[1], 1)
	if slices.Equal(p0, p1) {
		t.Error("both files have the same order")
	}
	for w, at := range [2][]int{p0, p1} {
		if at = slices.Sorted(slices.Values(at)); len(slices.Compact(at)) != 500 || at[0] != 0 {
			t.Errorf("D%d: not every result came once", w)
		}
	}
}
