package analysis_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/dpwatch/dpwatch/analysis"
	"github.com/dpwatch/dpwatch/internal/longtest"
	"github.com/dpwatch/dpwatch/internal/outcome"
)

// window is a place of an answer that a person's bit is written to, 0 or 1, beside noise that is drawn anew.
type window struct {
	name  string
	pairs int // in which an audit finds the bit
	line  func(r *rand.Rand, bit int) string
}

func hexOf(r *rand.Rand, n int) string {
	b := make([]byte, n)
	for i := range b {
		b[i] = "0123456789abcdef"[r.IntN(16)]
	}
	return string(b)
}

func digitsOf(r *rand.Rand, n int) string {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte('0' + r.IntN(10))
	}
	b[0] = byte('1' + r.IntN(9))
	return string(b)
}

// table returns a result set in JSON: n rows of what cell returns.
func table(columns, rows int, cell func(row, column int) string) string {
	var b strings.Builder
	b.WriteString(`{"rows":[`)
	for i := range rows {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteByte('[')
		for j := range columns {
			if j > 0 {
				b.WriteByte(',')
			}
			b.WriteString(cell(i, j))
		}
		b.WriteByte(']')
	}
	b.WriteString("]}")
	return b.String()
}

func noisy(r *rand.Rand) string { return fmt.Sprintf("%.4f", lap(r, 100)) }

// windows are behind limits that an analysis of answers by float64, first rows, first columns and first bytes has.
func windows() []window {
	choose := func(bit int, zero, one string) string { return [2]string{zero, one}[bit] }
	return []window{
		{"a group's id beyond 2^53", 200, func(r *rand.Rand, bit int) string {
			return table(2, 2, func(i, j int) string {
				return [2]string{[2]string{"1152921504606847900", choose(bit, "1152921504606847001", "1152921504606847006")}[i], noisy(r)}[j]
			})
		}},
		{"an integer beyond 2^53", 200, func(r *rand.Rand, bit int) string {
			return table(2, 1, func(_, j int) string { return [2]string{fmt.Sprint(1<<60 + 60*bit + r.IntN(4)), noisy(r)}[j] })
		}},
		{"an array of integers beyond 2^53", 200, func(r *rand.Rand, bit int) string {
			return table(1, 1, func(_, _ int) string { return fmt.Sprintf("[%d,%s]", 1<<60+60*bit+r.IntN(4), noisy(r)) })
		}},
		{"a digit of 40", 400, func(r *rand.Rand, bit int) string {
			return digitsOf(r, 20) + "." + digitsOf(r, 9) + fmt.Sprint(5*bit+r.IntN(5)) + digitsOf(r, 10)
		}},
		{"beyond the largest float64", 200, func(r *rand.Rand, bit int) string {
			return table(2, 1, func(_, j int) string { return [2]string{choose(bit, "1e400", "1e500"), noisy(r)}[j] })
		}},
		{"below the smallest float64", 200, func(r *rand.Rand, bit int) string {
			return table(2, 1, func(_, j int) string { return [2]string{choose(bit, "1e-400", "0"), noisy(r)}[j] })
		}},
		{"minus zero", 200, func(r *rand.Rand, bit int) string {
			return table(2, 1, func(_, j int) string { return [2]string{choose(bit, "0.0", "-0.0"), noisy(r)}[j] })
		}},
		{"trailing zero", 200, func(r *rand.Rand, bit int) string {
			return fmt.Sprintf("%d%s", 100+r.IntN(900), choose(bit, ".5", ".50"))
		}},
		{"leading zeros", 200, func(r *rand.Rand, bit int) string { return choose(bit, "", "00") + fmt.Sprint(100+r.IntN(900)) }},
		{"blank behind a word", 200, func(r *rand.Rand, bit int) string { return []string{"yes", "no"}[r.IntN(2)] + choose(bit, "", " ") }},
		{"a word of 500", 700, func(r *rand.Rand, bit int) string {
			return table(2, 1, func(_, j int) string {
				return [2]string{fmt.Sprintf("%q", fmt.Sprintf("%08x", uint32(2*r.IntN(250)+bit)*2654435761)), noisy(r)}[j]
			})
		}},
		{"an integer of 500", 700, func(r *rand.Rand, bit int) string {
			return table(2, 1, func(_, j int) string {
				return [2]string{fmt.Sprint(uint32(2*r.IntN(250)+bit) * 2654435761), noisy(r)}[j]
			})
		}},
		{"row 300 of 1,000", 120, func(r *rand.Rand, bit int) string {
			return table(1, 1000, func(i, _ int) string {
				if i == 299 && bit == 1 {
					return "1000000"
				}
				return noisy(r)
			})
		}},
		{"row 300 of a group", 120, func(r *rand.Rand, bit int) string {
			return table(2, 600, func(i, j int) string {
				switch {
				case j == 0:
					return [2]string{`"a"`, `"b"`}[i/300]
				case i == 299 && bit == 1:
					return "1000000"
				}
				return noisy(r)
			})
		}},
		{"order behind row 512", 120, func(r *rand.Rand, bit int) string {
			return table(2, 600, func(i, j int) string {
				if j == 1 {
					return noisy(r)
				}
				if i >= 560 && bit == 1 {
					i = 1159 - i
				}
				return fmt.Sprintf(`"g%03d"`, i)
			})
		}},
		{"a key behind eight columns", 300, func(r *rand.Rand, bit int) string {
			from := r.IntN(20)
			return table(9, 20, func(i, j int) string {
				switch k := (i + from) % 20; {
				case j == 8:
					return fmt.Sprintf(`"g%02d"`, k)
				case j == 0 && k == 3+9*bit, j == 0 && k == 5:
					return fmt.Sprint(9000 + r.IntN(60))
				}
				return fmt.Sprint(r.IntN(60))
			})
		}},
		{"the name of column 70", 120, func(r *rand.Rand, bit int) string {
			var names, row []string
			for i := range 70 {
				names, row = append(names, fmt.Sprintf(`"c%d"`, i)), append(row, noisy(r))
			}
			names[69] = choose(bit, `"a"`, `"b"`)
			return `{"columns":[` + strings.Join(names, ",") + `],"rows":[[` + strings.Join(row, ",") + `]]}`
		}},
		{"digits of column 20", 300, func(r *rand.Rand, bit int) string {
			return table(30, 1, func(_, j int) string {
				if j == 19 {
					return fmt.Sprint(r.IntN(1000)) + choose(bit, ".25", ".75")
				}
				return noisy(r)
			})
		}},
		{"a text behind byte 4,096", 120, func(r *rand.Rand, bit int) string {
			return `{"rows":[["` + strings.Repeat("some words, ", 400) + choose(bit, "left", "right") + " " + noisy(r) + `"]]}`
		}},
		{"a text of row 70", 120, func(r *rand.Rand, bit int) string {
			return table(1, 100, func(i, _ int) string {
				if i == 69 {
					return fmt.Sprintf(`"%s %s"`, choose(bit, "left", "right"), noisy(r))
				}
				return fmt.Sprintf(`"some %s"`, noisy(r))
			})
		}},
		{"a document of the third column", 300, func(r *rand.Rand, bit int) string {
			return table(3, 1, func(_, j int) string {
				if j == 2 && bit == 1 {
					return fmt.Sprintf(`{"n":%s,"vip":true}`, noisy(r))
				}
				return fmt.Sprintf(`{"n":%s}`, noisy(r))
			})
		}},
		{"a row anywhere", 120, func(r *rand.Rand, bit int) string {
			at := r.IntN(300)
			return table(1, 300, func(i, _ int) string {
				if i == at {
					return choose(bit, "500.123", "500.124")
				}
				return fmt.Sprintf("%.3f", 1000*r.Float64())
			})
		}},
		{"the parity of digits", 200, func(r *rand.Rand, bit int) string { return fmt.Sprint(2*r.IntN(1e6) + bit) }},
		{"a remainder over 13", 300, func(r *rand.Rand, bit int) string { return fmt.Sprint(13*r.IntN(1e6) + 5*bit) }},
		{"columns 11 and 27 equal", 400, func(r *rand.Rand, bit int) string {
			coin := r.IntN(2)
			return table(30, 1, func(_, j int) string {
				switch j {
				case 10:
					return fmt.Sprintf(`"%c"`, 'x'+rune(coin))
				case 26:
					return fmt.Sprintf(`"%c"`, 'p'+rune(coin^bit))
				}
				return noisy(r)
			})
		}},
		{"the offset of an instant", 200, func(r *rand.Rand, bit int) string {
			minute := r.IntN(60)
			return fmt.Sprintf("2026-01-01 %s", choose(bit, fmt.Sprintf("10:%02d:00+00", minute), fmt.Sprintf("12:%02d:00+02", minute)))
		}},
		{"months or days", 200, func(r *rand.Rand, bit int) string {
			return fmt.Sprintf("%s %02d:00:00", choose(bit, "1 mon", "30 days"), r.IntN(24))
		}},
		{"a year beyond 9999", 200, func(r *rand.Rand, bit int) string { return fmt.Sprintf("%d-01-%02d", 12000+bit, 1+r.IntN(28)) }},
		{"a digit of a hash, one of ten NULL", 400, func(r *rand.Rand, bit int) string {
			if r.IntN(10) == 0 {
				return `{"rows":[[null]]}`
			}
			return `{"rows":[["` + hexOf(r, 99) + fmt.Sprintf("%x", r.IntN(8)+8*bit) + hexOf(r, 100) + `"]]}`
		}},
	}
}

// drawWindow draws a pair with the bit in a window: as it is, or by randomised response, which keeps the claim 1 exactly.
func drawWindow(t *testing.T, w window, response bool) draw {
	one := func(r *rand.Rand, world int) analysis.Outcome {
		bit := world
		if response && r.Float64() >= pOf(1) {
			bit = 1 - world
		}
		o, err := new(outcome.Parser).ParseLine([]byte(w.line(r, bit)))
		if err != nil {
			t.Fatal(err)
		}
		return o
	}
	return func(r *rand.Rand) (d0, d1 analysis.Outcome) { return one(r, 0), one(r, 1) }
}

// TestWindows: a bit behind each window is found, or the report says what was not read. The seeds are fixed.
func TestWindows(t *testing.T) {
	longtest.SkipFast(t)
	t.Parallel()
	for _, w := range windows() {
		t.Run(w.name, func(t *testing.T) {
			t.Parallel()
			if r := run(t, analysis.Claim{Epsilon: 1}, w.pairs, 1, drawWindow(t, w, false)); r.Verdict != analysis.Violation {
				t.Errorf("%s (%s), %d pairs", r.Verdict, r.Reason, r.Trials.D0)
			} else {
				t.Logf("found at %d pairs: %s, %s", *r.DetectedAt, r.Event.Score, r.Event.Description.String())
			}
		})
	}
}

// TestHonestWindows: the same answers are no violation where the bit is hidden by randomised response, exactly at the
// claim. Each audit raises an alarm with probability .05 at most. The seeds are fixed.
func TestHonestWindows(t *testing.T) {
	longtest.SkipFast(t)
	t.Parallel()
	audits := int(longtest.Count(3, 40))
	alarms, all := 0, 0
	for _, w := range windows() {
		found := 0
		for seed := range audits {
			if detected(t, analysis.Claim{Epsilon: 1}, w.pairs, uint64(seed), drawWindow(t, w, true)) <= w.pairs {
				found++
			}
		}
		t.Logf("%s: %d of %d audits", w.name, found, audits)
		alarms, all = alarms+found, all+audits
	}
	// By Hoeffding's inequality more has a probability of 1e-6 at most.
	if most := .05*float64(all) + 2.63*math.Sqrt(float64(all)); float64(alarms) > most {
		t.Errorf("%d of %d audits of right mechanisms raise an alarm", alarms, all)
	}
}
