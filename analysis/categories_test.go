package analysis_test

import (
	"math/rand/v2"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dpwatch/dpwatch/analysis"
	"github.com/dpwatch/dpwatch/internal/withheld"
)

// figures audits n pairs and returns what can be drawn.
func figures(t *testing.T, n int, pair func(i int) (d0, d1 analysis.Outcome)) analysis.Figures {
	t.Helper()
	a, err := analysis.New(analysis.Claim{Epsilon: 1}, analysis.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range n {
		a.Add(pair(i))
	}
	return a.Figures()
}

func TestCategories(t *testing.T) {
	t.Parallel()
	t.Run("words", func(t *testing.T) {
		t.Parallel()
		// 16 words on D0 in turn; on D1 every other trial is word 5.
		f := figures(t, 480, func(i int) (d0, d1 analysis.Outcome) {
			w := "w" + strconv.Itoa(i/2%16)
			if i%2 == 0 {
				return word("w" + strconv.Itoa(i%16)), word("w5")
			}
			return word("w" + strconv.Itoa(i%16)), word(w)
		})
		c := f.Categories
		if f.Histogram != nil || c == nil {
			t.Fatalf("histogram %v, categories %v", f.Histogram, c)
		}
		if c.Names[0].Reveal() != `"w5"` || !c.Event[0] || c.Direction != "D1" || c.D0[0] != 30 || c.D1[0] != 255 {
			t.Errorf("%+v", c)
		}
		last := len(c.Names) - 1
		if last != 12 || c.Names[last].Reveal() != "4 others" || c.Event[last] {
			t.Errorf("%d others %q, marked: %v", last, c.Names[last], c.Event[last])
		}
		var sum [2]int
		for i := range c.Names {
			sum[0], sum[1] = sum[0]+c.D0[i], sum[1]+c.D1[i]
			if i > 0 && i < last && c.D0[i]+c.D1[i] > c.D0[i-1]+c.D1[i-1] {
				t.Errorf("%s is more frequent than %s", c.Names[i], c.Names[i-1])
			}
		}
		if sum != [2]int{480, 480} {
			t.Errorf("%v outcomes counted, of 480", sum)
		}
	})
	t.Run("absent", func(t *testing.T) {
		t.Parallel()
		r := rand.New(rand.NewPCG(4, 4))
		f := figures(t, 200, func(i int) (d0, d1 analysis.Outcome) {
			d0, d1 = groups(lap(r, 1), lap(r, 1)), groups(lap(r, 1), lap(r, 1))
			if i%10 > 0 {
				d1.Rows = d1.Rows[:1]
			}
			return d0, d1
		})
		want := &analysis.Categories{
			Label: withheld.New("store_id=1, column sum", "group 2 of 2, column sum"),
			Names: []withheld.Text{withheld.Public("any number"), withheld.Public("absent")},
			D0:    []int{200, 0}, D1: []int{20, 180}, Direction: "D0", Event: []bool{true, false},
		}
		if f.Categories != nil && f.Categories.Direction == "D1" {
			want.Direction, want.Event = "D1", []bool{false, true}
		}
		if d := cmp.Diff(want, f.Categories); d != "" {
			t.Error(d)
		}
	})
	t.Run("numbers_alone", func(t *testing.T) {
		t.Parallel()
		r := rand.New(rand.NewPCG(4, 4))
		f := figures(t, 50, func(int) (d0, d1 analysis.Outcome) { return value(lap(r, 1)), value(lap(r, 1)) })
		if f.Categories != nil || f.Histogram == nil {
			t.Errorf("categories %+v, histogram %v", f.Categories, f.Histogram)
		}
	})
	t.Run("nothing", func(t *testing.T) {
		t.Parallel()
		f := figures(t, 50, func(int) (d0, d1 analysis.Outcome) { return failed("22012"), failed("22012") })
		if f.Categories != nil || f.Histogram != nil {
			t.Errorf("categories %+v, histogram %v", f.Categories, f.Histogram)
		}
	})
}
