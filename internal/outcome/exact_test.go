package outcome_test

import (
	"math/big"
	"math/rand/v2"
	"strconv"
	"testing"

	"github.com/dpwatch/dpwatch/internal/outcome"
)

// TestCompare compares numbers of any length with math/big.
func TestCompare(t *testing.T) {
	t.Parallel()
	texts := []string{
		"0", "-0", "0.0", "00", "1", "01", "1.0", "1.50", "1.5", "-1.5", "1e400", "1e500", "-1e400", "1e-400", "0.00012", "1.2e-4", "1.2E-4", "12", "100", "1e2",
		"1152921504606846976", "1152921504606846977", "1152921504606847036", "-1152921504606846977",
		"0.1234567890123456789012345678901234567890", "0.1234567890123456789012345678901234567891", "1234567890123456789012345678901234567890", "1234567890123456789012345678901234567891",
	}
	r := rand.New(rand.NewPCG(1, 1))
	for range 40 {
		digits := strconv.FormatUint(1e18+r.Uint64N(10), 10) + strconv.FormatUint(r.Uint64N(100), 10)
		at := r.IntN(len(digits))
		texts = append(texts, digits, digits[:at+1]+"."+digits[at:], "-"+digits)
	}
	for _, a := range texts {
		for _, b := range texts {
			x, _ := outcome.ParseNumber(a)
			y, _ := outcome.ParseNumber(b)
			p, _, _ := big.ParseFloat(a, 10, 3000, big.ToNearestEven)
			q, _, _ := big.ParseFloat(b, 10, 3000, big.ToNearestEven)
			if got := outcome.Compare(x, a, y, b); got != p.Cmp(q) {
				t.Fatalf("%s against %s is %d, want %d", a, b, got, p.Cmp(q))
			}
		}
	}
	for _, c := range []struct {
		a, b string
		want int
	}{{"NaN", "1", -1}, {"NaN", "NaN", 0}, {"Infinity", "1e500", 0}} {
		x, _ := outcome.ParseNumber(c.a)
		y, _ := outcome.ParseNumber(c.b)
		if got := outcome.Compare(x, c.a, y, c.b); got != c.want {
			t.Errorf("%s against %s is %d, want %d", c.a, c.b, got, c.want)
		}
	}
}

// TestHash checks that values which differ in a byte have different hashes, and those without a text theirs, too.
func TestHash(t *testing.T) {
	t.Parallel()
	seen := map[uint64]outcome.Value{}
	check := func(v outcome.Value) {
		h := v.Hash()
		if other, ok := seen[h]; ok {
			t.Errorf("%+v and %+v have one hash", v, other)
		}
		seen[h] = v
	}
	check(outcome.Value{})
	for i := range 1000 {
		text := strconv.Itoa(i)
		check(outcome.Value{Kind: outcome.Text, Text: text})
		check(outcome.Value{Kind: outcome.Number, Num: float64(i), Text: text})
		check(outcome.Value{Kind: outcome.Number, Num: float64(i)})
		check(outcome.Value{Kind: outcome.Text, Text: "a text of some length " + text})
	}
	for _, text := range []string{"", " ", "yes", "yes ", "1.5", "1.50", "-0", "-0.0"} {
		check(outcome.Value{Kind: outcome.Text, Text: text})
	}
	check(outcome.Value{Kind: outcome.Bool})
	check(outcome.Value{Kind: outcome.Bool, Num: 1})
}
