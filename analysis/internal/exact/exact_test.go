package exact

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	"github.com/dpwatch/dpwatch/analysis/internal/state"
	"github.com/dpwatch/dpwatch/internal/outcome"
)

func TestScan(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		text    string
		numbers []string
		words   int
	}{
		{"", nil, 0},
		{"count 500 in all", []string{"500"}, 3},
		{"-1.5,+2,3-4", []string{"-1.5", "+2", "3", "4"}, 0},
		{`{"n": -12.25, "k": [1, 2.]}`, []string{"-12.25", "1", "2"}, 2},
		{"5kg of 3e8 and a1 b2c d41d8cd98f00b204", []string{"5"}, 3},
		{"2026-11-28 10:00:00+02", []string{"2026", "11", "28", "10", "00", "00", "02"}, 0},
	} {
		var numbers []string
		words := 0
		scan(c.text, func(_ uint64, number string) { numbers = append(numbers, number) }, func(uint64) { words++ })
		if !slices.Equal(numbers, c.numbers) || words != c.words {
			t.Errorf("%q: numbers %q, %d words, want %q and %d", c.text, numbers, words, c.numbers, c.words)
		}
	}
	skeleton := func(s string) uint64 { return scan(s, func(uint64, string) {}, func(uint64) {}) }
	if skeleton("took 1.5 ms") != skeleton("took -22 ms") || skeleton("took 1.5 ms") == skeleton("took 1.5 s") {
		t.Error("a skeleton is all but the numbers")
	}
}

// TestMemory checks what is known of values, while the table grows.
func TestMemory(t *testing.T) {
	t.Parallel()
	var m memory
	hash := func(i int) uint64 { return outcome.Mix(uint64(i), 1) }
	want := []uint8{neverSeen, onceOnD0, onceOnD1, onBoth, oftenOnD0, oftenOnD1, mostlyOnD0, mostlyOnD1}
	for i := range 4000 {
		for k, n := range [...][2]int{{0, 0}, {1, 0}, {0, 1}, {1, 1}, {2, 0}, {0, 9}, {5, 1}, {2, 9}} {
			for w := range 2 {
				for range n[w] {
					m.add(w, hash(8*i+k))
				}
			}
		}
	}
	wrong := 0
	for i := range 4000 {
		for k := range want {
			if m.recall(hash(8*i+k)) != want[k] && 8*i+k < 2*maxMemory {
				wrong++
			}
		}
	}
	if m.n > maxMemory || m.lost == 0 {
		t.Errorf("%d values are kept, %d found no room", m.n, m.lost)
	}
	if room := 4000*7 - maxMemory; wrong > room+16 { // a fingerprint of 31 bits may stand for two
		t.Errorf("%d values are not known as they should be, want %d at most", wrong, room)
	}
	m = memory{}
	for range 1000 {
		m.add(0, hash(1))
	}
	if got := m.recall(hash(1)); got != oftenOnD0 {
		t.Errorf("a value that came 1000 times is %d", got)
	}
}

// TestRotation: of more cells than questions every one has its turn, and the one that tells the worlds apart stays. A
// state that is restored in between goes on alike.
func TestRotation(t *testing.T) {
	t.Parallel()
	const cells = 1500
	r := rand.New(rand.NewPCG(1, 1))
	draw := func(world int) *outcome.Outcome {
		o := &outcome.Outcome{Columns: []outcome.Column{{Name: "g"}, {Name: "n"}}}
		for i := range cells {
			x := r.IntN(1000)
			if i == 1234 {
				x = 500*world + r.IntN(500)
			}
			o.Rows = append(o.Rows, []outcome.Value{{Kind: outcome.Text, Text: strconv.Itoa(i)}, {Kind: outcome.Number, Num: float64(x), Text: strconv.Itoa(x)}})
		}
		return o
	}
	a := New(false, false)
	var first [][2]*outcome.Outcome
	for range FirstPairs {
		first = append(first, [2]*outcome.Outcome{draw(0), draw(1)})
	}
	a.Begin(first, slices.Repeat([]bool{true}, FirstPairs))
	b := restored(t, a)
	gap := 0.0
	for n := range 6 * slicePairs {
		pair := [2]*outcome.Outcome{draw(0), draw(1)}
		x, y := a.Read(pair), b.Read(pair)
		if x != y || x != a.Read(pair) {
			t.Fatalf("after %d pairs the scores are %v, of the restored state %v, and %v again", n, x, y, a.Read(pair))
		}
		a.Count()
		b.Count()
		if n >= 5*slicePairs {
			gap += x[0] - x[1]
		}
		if n%50 == 0 {
			b = restored(t, b)
		}
	}
	if gap /= slicePairs; gap < 1 {
		t.Errorf("the scores of the worlds differ by %v", gap)
	}
	turns := a.Turns()
	if len(turns) == 0 || turns[0].Looked >= turns[0].Of {
		t.Errorf("%v does not say that questions take turns", turns)
	}
	if what, column := a.Best(); what == "" || column != 1 {
		t.Errorf("the best question is about %q of column %d", what, column)
	}
}

func restored(t *testing.T, a *Answers) *Answers {
	t.Helper()
	w := &state.Codec{}
	a.State(w)
	b := New(false, false)
	c := &state.Codec{Reading: true, Buf: w.Buf}
	if b.State(c); c.Err != nil || len(c.Buf) > 0 {
		t.Fatalf("%v, %d bytes are left", c.Err, len(c.Buf))
	}
	return b
}

// TestNothingToLearn: values that are new every time and the same law on both worlds hardly ever give a question that
// counts, and never a score that differs much: the mean over many audits is near 0.
func TestNothingToLearn(t *testing.T) {
	t.Parallel()
	sum, n := 0.0, 0
	for seed := range uint64(30) {
		r := rand.New(rand.NewPCG(seed, 2))
		draw := func() *outcome.Outcome {
			text := fmt.Sprintf("%.6f", r.NormFloat64())
			x, _ := strconv.ParseFloat(text, 64)
			return &outcome.Outcome{Columns: []outcome.Column{{Name: "x"}}, Rows: [][]outcome.Value{{{Kind: outcome.Number, Num: x, Text: text}}}}
		}
		a := New(false, false)
		a.Begin([][2]*outcome.Outcome{{draw(), draw()}}, []bool{true})
		for range 300 {
			s := a.Read([2]*outcome.Outcome{draw(), draw()})
			a.Count()
			sum, n = sum+s[0]-s[1], n+1
		}
	}
	if mean := sum / float64(n); mean > .1 || mean < -.1 {
		t.Errorf("the scores of equal worlds differ by %v", mean)
	}
}
