package analysis

import (
	"slices"

	"github.com/dpwatch/dpwatch/analysis/internal/code"
	"github.com/dpwatch/dpwatch/analysis/internal/score"
	"github.com/dpwatch/dpwatch/internal/withheld"
)

// Categories holds the counts of the kept outcomes of one column of one partition that are not numbers: texts,
// booleans, NULL, absent rows, errors. The most frequent come first; all numbers together are one, and so is the rest.
type Categories struct {
	Label  withheld.Text
	Names  []withheld.Text
	D0, D1 []int
	// Event marks those that are part of the event with the strongest evidence; none if the event is another one.
	// Direction is the world in which it is more likely.
	Event     []bool
	Direction string
}

// maxBars is how many categories are shown one by one.
const maxBars = 12

// tallied is one category, or all numbers.
type tallied struct {
	id     code.Label // 0 for numbers
	counts [2]int
	event  bool
}

// categories counts the outcomes of a slot by category. It is nil where all are numbers.
func (o *observations) categories(s *score.Series, m marked) *Categories {
	all := tallyCategories(s, m)
	if len(all) == 0 || len(all) == 1 && all[0].id == 0 {
		return nil
	}
	c := &Categories{Label: o.scores.SlotLabel(s.Slot)}
	add := func(name withheld.Text, t tallied) {
		c.Names, c.D0, c.D1 = append(c.Names, name), append(c.D0, t.counts[0]), append(c.D1, t.counts[1])
		c.Event = append(c.Event, t.event)
		if t.event {
			c.Direction = m.direction
		}
	}
	word := o.scores.CategoryWord(s)
	shown := min(len(all), maxBars)
	for _, t := range all[:shown] {
		switch {
		case t.id != 0:
			add(word(t.id), t)
		case len(o.scores.Reader.Measures) == 0:
			add(withheld.Public("present"), t)
		default:
			add(withheld.Public("any number"), t)
		}
	}
	if rest := all[shown:]; len(rest) > 0 {
		other := tallied{event: true}
		for _, t := range rest {
			other.counts[0], other.counts[1] = other.counts[0]+t.counts[0], other.counts[1]+t.counts[1]
			other.event = other.event && t.event
		}
		add(withheld.Sprintf("%d others", len(rest)), other)
	}
	return c
}

// tallyCategories counts the kept outcomes, the most frequent first. Numbers count as part of the event if all their
// bins are.
func tallyCategories(s *score.Series, m marked) []tallied {
	counts := map[code.Label]*[2]int{}
	for w, codes := range s.Past {
		for _, c := range codes {
			id := code.Label(0)
			if !code.IsNumber(c) {
				if id = code.LabelOf(c); id.Category() == code.OtherText && !slices.Contains(s.Binner.Categories, id) {
					id = code.OtherText
				}
			}
			if counts[id] == nil {
				counts[id] = &[2]int{}
			}
			counts[id][w]++
		}
	}
	var all []tallied
	for id, n := range counts {
		t := tallied{id: id, counts: *n}
		if id == 0 {
			numbers := uint64(1)<<m.Numeric() - 1
			t.event = m.set&numbers == numbers
		} else {
			t.event = m.has(id.Code())
		}
		all = append(all, t)
	}
	slices.SortFunc(all, func(x, y tallied) int {
		if d := y.counts[0] + y.counts[1] - x.counts[0] - x.counts[1]; d != 0 {
			return d
		}
		return int(x.id) - int(y.id)
	})
	return all
}
