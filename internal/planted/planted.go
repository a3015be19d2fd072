// Package planted has answers with the bit of a person in a place that an analysis may not read, for tests and
// measurements.
package planted

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"

	"github.com/dpwatch/dpwatch/internal/outcome"
)

// Place is a place of an answer that the bit of a person is written to, beside noise that is drawn anew.
type Place struct {
	Name  string
	Pairs int // in which an audit finds the bit
	line  func(r *rand.Rand, bit int) string
}

// Answer returns an answer with the bit 0 or 1.
func (p Place) Answer(r *rand.Rand, bit int) (outcome.Outcome, error) {
	return new(outcome.Parser).ParseLine([]byte(p.line(r, bit)))
}

// Response is Answer with the bit by randomised response that keeps an epsilon exactly.
func (p Place) Response(r *rand.Rand, bit int, epsilon float64) (outcome.Outcome, error) {
	if r.Float64() >= 1/(1+math.Exp(-epsilon)) {
		bit = 1 - bit
	}
	return p.Answer(r, bit)
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

func noisy(r *rand.Rand) string {
	return fmt.Sprintf("%.4f", 100*(r.ExpFloat64()-r.ExpFloat64()))
}

// Places returns places behind limits that an analysis of answers by float64, first rows, first columns and first bytes
// has.
func Places() []Place {
	choose := func(bit int, zero, one string) string { return [2]string{zero, one}[bit] }
	return []Place{
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
		{"a text of row 70", 200, func(r *rand.Rand, bit int) string {
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
		{"the bound of a range", 200, func(r *rand.Rand, bit int) string {
			return fmt.Sprintf(`{"rows":[["[%d.5,%d.5%s"]]}`, r.IntN(1000), 1000+r.IntN(1000), choose(bit, ")", "]"))
		}},
		{"the offset of a range of instants", 200, func(r *rand.Rand, bit int) string {
			const day = `2026-01-%02d`
			return fmt.Sprintf(`{"rows":[["[\"`+day+` %s\",\"`+day+` %s\")"]]}`, 1+r.IntN(9), choose(bit, "10:00:00+00", "12:00:00+02"), 11+r.IntN(9), choose(bit, "10:00:00+00", "12:00:00+02"))
		}},
		{"one more range of a multirange", 300, func(r *rand.Rand, bit int) string {
			return fmt.Sprintf(`{"rows":[["{[%d,%d)%s}"]]}`, r.IntN(1000), 1000+r.IntN(1000), choose(bit, "", ",[5000,5000]"))
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
