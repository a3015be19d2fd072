package analysis

import (
	"unsafe"

	"github.com/dpwatch/dpwatch/analysis/internal/book"
	"github.com/dpwatch/dpwatch/analysis/internal/event"
	"github.com/dpwatch/dpwatch/analysis/internal/results"
)

// Size returns about how many bytes of memory the audit holds: what it keeps of the past and of results, the counts and
// the bets. It takes time in proportion to the scores and the blocks, not to the trials.
func (a *Audit) Size() int {
	o, v := &a.observed, &a.evidence
	const fixed, perWord, perKey, perRepeat = 64 << 10, 96, 160, 40
	n := fixed + perRepeat*o.scores.Repeats.Len() + perWord*len(o.scores.Errors.Words) + int(unsafe.Sizeof(PathPoint{}))*cap(v.path)
	n += v.lead.Size() + v.climber.Size()
	for i := range v.sides {
		n += v.sides[i].lead.Size()
	}
	n += v.book.Size()
	tables := map[*event.Table]bool{nil: true}
	add := func(t *event.Table) {
		if !tables[t] {
			tables[t] = true
			n += int(unsafe.Sizeof(event.Table{})) + 16*t.Bins()
		}
	}
	count := func(e *book.Epoch) {
		n += e.Size()
		for _, en := range e.Entries {
			add(en.Table)
		}
	}
	for _, e := range v.book.Epochs {
		count(e)
	}
	count(v.epoch)
	for _, s := range o.scores.All() {
		add(s.Table)
		n += s.Size()
	}
	for i := range o.buckets {
		n += int(unsafe.Sizeof(slotEstimate{})) + 8*(cap(o.buckets[i].numbers[0])+cap(o.buckets[i].numbers[1]))
	}
	n += o.scores.Exact.Size()
	if r := o.scores.Reader; r != nil {
		n += perKey * len(r.Labels)
		for _, d := range r.Words {
			n += perWord * len(d.Words)
		}
	}
	for i := range o.retained {
		n += results.SizeOf(&o.retained[i].worlds[0]) + results.SizeOf(&o.retained[i].worlds[1])
	}
	return n
}

// Size returns about how many bytes of memory the watch holds.
func (d *Drift) Size() int {
	n := 0
	for _, list := range d.kept {
		n += 8 * cap(list)
	}
	return n
}

// Size returns about how many bytes of memory the report holds.
func (r *Report) Size() int {
	const fixed, perText = 1 << 10, 128 // a text has two forms, about equally long
	n := fixed + len(r.Reason)
	for _, p := range r.Partitions {
		n += perText + 2*len(p.Key.String())
	}
	for _, w := range r.Warnings {
		n += perText + 2*len(w.String())
	}
	return n
}
