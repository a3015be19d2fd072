package buckets

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/dpwatch/dpwatch/internal/outcome"
	"github.com/dpwatch/dpwatch/internal/withheld"
)

// maxBuckets is the greatest number of buckets with a result.
const maxBuckets = 10_000

// Collector keeps the cells of pairs of results.
type Collector struct {
	rules []Rule
	cells [2][]cell // of each world, len(rules) for each trial
	pairs int
}

// NewCollector returns a collector for the combinations of the parts of all rules.
func NewCollector(rules []Rule) (*Collector, error) {
	if len(rules) == 0 {
		return nil, errors.New("buckets: no rule")
	}
	return &Collector{rules: slices.Clone(rules)}, nil
}

// Add adds a pair of results.
func (c *Collector) Add(d0, d1 outcome.Outcome) error {
	for w, o := range []outcome.Outcome{d0, d1} {
		for i := range c.rules {
			x, err := c.rules[i].cell(o)
			if err != nil {
				return fmt.Errorf("on D%d: %w", w, err)
			}
			c.cells[w] = append(c.cells[w], x)
		}
	}
	c.pairs++
	return nil
}

// fix chooses the edges of quantiles from the first pairs of both worlds and places all numbers.
func (c *Collector) fix(first int) {
	for i := range c.rules {
		r := &c.rules[i]
		if r.quantiles == 0 {
			continue
		}
		var past []float64
		for w := range 2 {
			for t := range first {
				if x := c.cells[w][t*len(c.rules)+i]; x.isNum && !math.IsInf(x.x, 0) {
					past = append(past, x.x)
				}
			}
		}
		slices.Sort(past)
		r.edges = nil
		for q := 1; q < r.quantiles && len(past) > 0; q++ {
			if edge := past[len(past)*q/r.quantiles]; edge > past[0] && !slices.Contains(r.edges, edge) {
				r.edges = append(r.edges, edge)
			}
		}
		for w := range 2 {
			for t := range c.pairs {
				if x := &c.cells[w][t*len(c.rules)+i]; x.isNum {
					x.part = interval(r.edges, x.x)
				}
			}
		}
	}
}

// counted is a bucket with its counts: in each part of the trials, in each world.
type counted struct {
	parts  []int
	counts [2][2]int
}

// count returns the buckets that have a result, in the order of their parts.
func (c *Collector) count(first int) ([]counted, error) {
	index := map[string]*counted{}
	for w := range 2 {
		for t := range c.pairs {
			parts := make([]int, len(c.rules))
			for i := range parts {
				parts[i] = c.cells[w][t*len(c.rules)+i].part
			}
			key := fmt.Sprint(parts)
			b := index[key]
			if b == nil {
				if len(index) == maxBuckets {
					return nil, fmt.Errorf("--partition: the results are in more than %d buckets: give fewer rules or parts", maxBuckets)
				}
				b = &counted{parts: parts}
				index[key] = b
			}
			half := 0
			if t >= first {
				half = 1
			}
			b.counts[half][w]++
		}
	}
	all := make([]counted, 0, len(index))
	for _, b := range index {
		all = append(all, *b)
	}
	slices.SortFunc(all, func(a, b counted) int { return slices.Compare(a.parts, b.parts) })
	return all, nil
}

// name returns the name of a bucket.
func (c *Collector) name(parts []int) withheld.Text {
	var public, full []string
	for i, part := range parts {
		name := c.rules[i].name(part)
		public, full = append(public, name.String()), append(full, name.Reveal())
	}
	public, full = slices.Compact(public), slices.Compact(full) // no row of any column
	return withheld.New(strings.Join(full, ", "), strings.Join(public, ", "))
}
