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
	const fixed, perWord, perKey, perRepeat = 64 << 10, 96, 160, 40
	n := fixed + perRepeat*a.scores.Repeats.Len() + perWord*len(a.scores.Errors.Words) + int(unsafe.Sizeof(PathPoint{}))*cap(a.path)
	n += a.lead.Size() + a.climber.Size()
	n += a.book.Size()
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
	for _, e := range a.book.Epochs {
		count(e)
	}
	count(a.epoch)
	for _, s := range a.scores.All() {
		add(s.Table)
		n += s.Size()
	}
	for i := range a.buckets {
		n += int(unsafe.Sizeof(slotEstimate{})) + 8*(cap(a.buckets[i].numbers[0])+cap(a.buckets[i].numbers[1]))
	}
	if r := a.scores.Reader; r != nil {
		n += perKey * len(r.Labels)
		for _, d := range r.Words {
			n += perWord * len(d.Words)
		}
	}
	for i := range a.retained {
		n += results.SizeOf(&a.retained[i].worlds[0]) + results.SizeOf(&a.retained[i].worlds[1])
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
