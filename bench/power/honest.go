package power

import (
	"context"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"regexp"
	"runtime"
	"slices"
	"strings"

	"github.com/dpwatch/dpwatch/analysis"
	"github.com/dpwatch/dpwatch/internal/planted"
)

// group is honest mechanisms of one kind.
type group struct {
	name     string
	families []family
	part     int // of the audits that a mechanism has elsewhere
}

// honestGroups are right mechanisms at their tight claim, and answers that hide a person's bit in a place of their own by
// randomised response.
func honestGroups() []group {
	all := []group{
		{"numbers, responses and selections", plainRight(), 1},
		{"few results, or the shape of a law", rareRight(), 1},
		{"several columns or groups at once", jointlyRight(), 1},
		{"texts and the order of rows", rightTexts(), 1},
		{"what surrounds the numbers", rightForms(), 1},
		{"arithmetic after the noise", rightArithmetic(), 1},
		{"numbers as texts", rightWritings(), 1},
		{"words, integers and rows that come again", recurringRight(), 1},
	}
	var places, alike []family
	for _, p := range planted.Places() {
		response := func(r *rand.Rand, bit int) analysis.Outcome { return must(p.Response(r, bit, 1)) }
		places = append(places, family{name: p.Name, claim: only(1), draw: each(0, 1, response)})
		answer := func(r *rand.Rand, bit int) analysis.Outcome { return must(p.Answer(r, bit)) }
		alike = append(alike, family{name: p.Name, claim: only(.05), draw: each(0, 0, answer)})
	}
	return append(all, group{"a bit in a place of an answer, by response", places, 1}, group{"the same places, one law on both sides, claim 0.05", alike, 10})
}

// must returns an answer of the program itself.
func must(o analysis.Outcome, err error) analysis.Outcome {
	if err != nil {
		panic(err)
	}
	return o
}

// oneOfMany is one of k values beside noise: each value is e times as likely in one of the worlds.
func oneOfMany(k int, write func(i uint32) analysis.Value) func(r *rand.Rand) (d0, d1 analysis.Outcome) {
	return each(0, 1, func(r *rand.Rand, world int) analysis.Outcome {
		o := columns(0, lap(r, 100))
		o.Rows[0][0] = write(uint32(2*r.IntN(k/2)+respond(r, world, 2, pOf(2, 1))) * 2654435761)
		return o
	})
}

func wordOf(i uint32) analysis.Value {
	return analysis.Value{Kind: analysis.Text, Text: fmt.Sprintf("%08x", i)}
}
func numberOf(i uint32) analysis.Value { return number(float64(i)) }

// recurringRight are answers whose values come again, at their tight claim.
func recurringRight() []family {
	geometricGroups := func(moves func(i int) float64, epsilon float64) func(r *rand.Rand) (d0, d1 analysis.Outcome) {
		return each(0.0, 1.0, func(r *rand.Rand, world float64) analysis.Outcome {
			xs := make([]float64, 20)
			for i := range xs {
				xs[i] = 50 + moves(i)*world + geometric(r, epsilon)
			}
			return groups(xs)
		})
	}
	third := func(i int) float64 { return map[int]float64{3: 1}[i] }
	return []family{
		{name: "one word of 40 1", claim: only(1), draw: oneOfMany(40, wordOf)},
		{name: "one word of 200 1", claim: only(1), draw: oneOfMany(200, wordOf)},
		{name: "one word of 5,000 1", claim: only(1), draw: oneOfMany(5000, wordOf)},
		{name: "one integer of 500 1", claim: only(1), draw: oneOfMany(500, numberOf)},
		{name: "one word of 500, 500-ary response 1", claim: only(1), draw: each(0, 1, func(r *rand.Rand, world int) analysis.Outcome {
			o := columns(0, lap(r, 100))
			o.Rows[0][0] = wordOf(uint32(respond(r, world, 500, pOf(500, 1))) * 2654435761)
			return o
		})},
		{name: "geometric noise, 10 columns of a tenth", claim: only(1), draw: each(0.0, 1.0, func(r *rand.Rand, world float64) analysis.Outcome {
			xs := make([]float64, 10)
			for i := range xs {
				xs[i] = 40 + world + geometric(r, .1)
			}
			return columns(xs...)
		})},
		{name: "geometric noise, one of 20 groups moves 1", claim: only(1), draw: geometricGroups(third, 1)},
		{name: "geometric noise, 20 groups move by 2", claim: only(1), draw: geometricGroups(func(int) float64 { return 2 }, .025)},
		{name: "geometric noise around 2^60 1", claim: only(1), draw: each(0, 1, func(r *rand.Rand, world int) analysis.Outcome {
			o := columns(0, lap(r, 100))
			n := int64(1)<<60 + int64(world) + int64(geometric(r, 1))
			o.Rows[0][0] = analysis.Value{Kind: analysis.Number, Num: float64(n), Text: fmt.Sprint(n)}
			return o
		})},
		{name: "a count with geometric noise in a sentence 1", claim: only(1), draw: each(0.0, 1.0, func(r *rand.Rand, world float64) analysis.Outcome {
			return word(fmt.Sprintf("count %v in all", 500+world+geometric(r, 1)))
		})},
		{name: "one more row by response 1", claim: only(1), draw: each(0, 1, func(r *rand.Rand, world int) analysis.Outcome {
			return groups(noisyVector(r, make([]float64, 5+respond(r, world, 2, pOf(2, 1))), 1))
		})},
		{name: "a row among keys that vary 1", claim: only(1), draw: each(0.0, 1.0, func(r *rand.Rand, world float64) analysis.Outcome {
			o := groups([]float64{world + geometric(r, 1)})
			for range 8 {
				o.Rows = append(o.Rows, []analysis.Value{number(float64(1 + r.IntN(60))), number(geometric(r, .5))})
			}
			return o
		})},
	}
}

// heavy is the number of values of an answer from which a quarter of the audits has to do.
const heavy = 200

// Honest counts the violations of audits of honest mechanisms and writes a table, again after every mechanism.
func Honest(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("honest", flag.ContinueOnError)
	o := options{}
	path := flags.String("o", "docs/measured/honest.md", "the file of the table")
	flags.IntVar(&o.alarmRuns, "runs", 40, "audits per mechanism; a quarter of them if its answers have 200 values or more")
	flags.IntVar(&o.alarmPairs, "pairs", 5000, "pairs of trials per audit")
	flags.IntVar(&o.workers, "workers", runtime.NumCPU(), "audits at a time")
	flags.Uint64Var(&o.seed, "seed", 70_000, "first seed")
	names := flags.String("groups", ".", "regular expression: only the rows of the table with such a name")
	if err := flags.Parse(args); err != nil {
		return err
	}
	chosen, err := regexp.Compile(*names)
	if err != nil {
		return fmt.Errorf("-groups: %w", err)
	}
	if o.alarmRuns < 10 || o.alarmPairs < 1 || o.workers < 1 {
		return fmt.Errorf("-runs must be at least 10, -pairs and -workers at least 1")
	}
	var rows []honestRow
	for _, g := range honestGroups() {
		if !chosen.MatchString(g.name) {
			continue
		}
		rows = append(rows, honestRow{name: g.name})
		row := &rows[len(rows)-1]
		for _, f := range g.families {
			if err := ctx.Err(); err != nil {
				return err
			}
			runs := o.alarmRuns / g.part
			if d0, _ := f.draw(rand.New(rand.NewPCG(1, 1))); len(d0.Rows) > 0 && len(d0.Rows)*len(d0.Rows[0]) >= heavy {
				runs = max(1, runs/4)
			}
			at, after, err := detections(f, o, runs, o.alarmPairs)
			if err != nil {
				return err
			}
			k, _ := slices.BinarySearch(at, o.alarmPairs+1)
			row.add(f.name, runs, k, after.confirmed)
			fmt.Fprintf(os.Stderr, "%s: %d of %d, %d confirmed\n", f.name, k, runs, after.confirmed)
			if err := os.WriteFile(*path, []byte(honestPage(rows, o.alarmPairs)), 0o644); err != nil {
				return err
			}
		}
	}
	return nil
}

// honestRow counts the audits of a group.
type honestRow struct {
	name                                 string
	mechanisms, audits, found, confirmed int
	worst                                string // the mechanism with the greatest share of violations
	worstFound, worstRuns                int
}

func (r *honestRow) add(name string, runs, found, confirmed int) {
	r.mechanisms++
	r.audits, r.found, r.confirmed = r.audits+runs, r.found+found, r.confirmed+confirmed
	if r.worst == "" || found*r.worstRuns > r.worstFound*runs {
		r.worst, r.worstFound, r.worstRuns = name, found, runs
	}
}

// chance is the probability at which a number of violations counts as more than alpha allows.
const chance = 1e-4

// honestPage returns the table in markdown.
func honestPage(rows []honestRow, pairs int) string {
	var b strings.Builder
	fmt.Fprintf(&b, `# How often do honest mechanisms raise an alarm?

`+"`make bench-honest`"+` writes this page. Audits of %d pairs, looked at after every pair, of mechanisms that keep their
claim exactly. *violations* are those of the first trials: alpha = %g allows as many as *expected at most*, and more than
*bound* have a probability below %g (binomial). *confirmed* are violations that fresh trials confirm.

| mechanisms | number | audits | violations | expected at most | bound | confirmed | most in one mechanism |
|---|---|---|---|---|---|---|---|
`, pairs, alpha, chance)
	total := honestRow{name: "all"}
	for _, r := range rows {
		r.line(&b, fmt.Sprintf("%d of %d (%s)", r.worstFound, r.worstRuns, r.worst))
		total.mechanisms, total.audits = total.mechanisms+r.mechanisms, total.audits+r.audits
		total.found, total.confirmed = total.found+r.found, total.confirmed+r.confirmed
	}
	total.line(&b, "")
	return b.String()
}

func (r *honestRow) line(b *strings.Builder, worst string) {
	fmt.Fprintf(b, "| %s | %d | %d | %d | %.0f | %d | %d | %s |\n", r.name, r.mechanisms, r.audits, r.found, alpha*float64(r.audits), binomialBound(r.audits, alpha, chance), r.confirmed, worst)
}

// binomialBound returns the least k that more than k successes in n trials have a probability of at most tail.
func binomialBound(n int, p, tail float64) int {
	left := 1.0
	for k := range n {
		choose, _ := math.Lgamma(float64(n + 1))
		a, _ := math.Lgamma(float64(k + 1))
		c, _ := math.Lgamma(float64(n - k + 1))
		left -= math.Exp(choose - a - c + float64(k)*math.Log(p) + float64(n-k)*math.Log1p(-p))
		if left <= tail {
			return k
		}
	}
	return n
}
