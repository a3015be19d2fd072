package power

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
)

// needed returns the smallest size, or for dpwatch the smallest number of pairs, after which nine of ten samples are
// found, as text.
func (c *comparison) needed(one *compared, key string) string {
	enough := (9*c.runs + 9) / 10
	if key == "dpwatch" {
		if at := one.at[enough-1]; at <= c.most {
			return strconv.Itoa(at)
		}
		return fmt.Sprintf("> %d", c.most)
	}
	for i, n := range c.sizes {
		found := 0
		for _, r := range one.readings[key] {
			if r.Found[i] {
				found++
			}
		}
		if found >= enough {
			return strconv.Itoa(n)
		}
	}
	return fmt.Sprintf("> %d", c.most)
}

func writeFound(w io.Writer, all []compared, c *comparison) {
	if len(all) == 0 {
		return
	}
	fmt.Fprintf(w, "Pairs of trials after which nine of ten samples are found, %d samples a row, alpha %g. The others have verdicts after %s pairs.\n\n",
		c.runs, alpha, strings.Trim(fmt.Sprint(c.sizes), "[]"))
	header(w, "mechanism", testers)
	for i := range all {
		fmt.Fprintf(w, "| %s ", all[i].name)
		for _, t := range testers {
			fmt.Fprintf(w, "| %s ", c.needed(&all[i], t.key))
		}
		fmt.Fprintln(w, "|")
	}
	withFixed := slices.Insert(slices.Clone(testers), 1, fixedBudget)
	for at, n := range boundSizes(c.most) {
		if c.boundRuns == 0 {
			break
		}
		fmt.Fprintf(w, "\nLower bound of epsilon after %d pairs, confidence %g, median of %d samples.\n\n", n, 1-alpha, c.boundRuns)
		header(w, "mechanism", withFixed)
		for i := range all {
			fmt.Fprintf(w, "| %s ", all[i].name)
			for _, t := range withFixed {
				fmt.Fprintf(w, "| %.3g ", median(all[i].readings[t.key], func(r reading) float64 { return at0(r.Bounds, at) }, c.boundRuns))
			}
			fmt.Fprintln(w, "|")
		}
	}
	fmt.Fprintf(w, "\nSeconds of a verdict on %d pairs, median over all samples; dpwatch ends when it has found one.\n\n", c.most)
	header(w, "", testers)
	fmt.Fprint(w, "| seconds ")
	for _, t := range testers {
		var every []reading
		for i := range all {
			every = append(every, all[i].readings[t.key]...)
		}
		fmt.Fprintf(w, "| %.2g ", median(every, func(r reading) float64 { return r.Seconds }, len(every)))
	}
	fmt.Fprintln(w, "|")
	fmt.Fprintln(w)
}

// at0 returns an element, NaN if there is none.
func at0(xs []float64, i int) float64 {
	if i < len(xs) {
		return xs[i]
	}
	return math.NaN()
}

// median returns the median of a figure of the first readings.
func median(all []reading, of func(reading) float64, n int) float64 {
	var xs []float64
	for _, r := range all[:min(n, len(all))] {
		xs = append(xs, of(r))
	}
	if len(xs) == 0 {
		return math.NaN()
	}
	slices.Sort(xs)
	return xs[(len(xs)-1)/2]
}

func header(w io.Writer, first string, testers []tester) {
	fmt.Fprintf(w, "| %s ", first)
	for _, t := range testers {
		fmt.Fprintf(w, "| %s ", t.name)
	}
	fmt.Fprintf(w, "|\n|%s\n", strings.Repeat("---|", len(testers)+1))
}

func writeAlarms(w io.Writer, all []compared, c *comparison) {
	if len(all) == 0 {
		return
	}
	fmt.Fprintf(w, "Samples of right mechanisms that are called violations: after %d pairs, and (in brackets) at one of the verdicts before, of %d.\n\n", c.most, c.runs)
	header(w, "mechanism", testers)
	for i := range all {
		fmt.Fprintf(w, "| %s ", all[i].name)
		for _, t := range testers {
			last, ever := 0, 0
			for _, r := range all[i].readings[t.key] {
				if r.Found[len(r.Found)-1] {
					last++
				}
				if slices.Contains(r.Found, true) {
					ever++
				}
			}
			fmt.Fprintf(w, "| %d (%d) ", last, ever)
		}
		fmt.Fprintln(w, "|")
	}
	fmt.Fprintln(w)
}
