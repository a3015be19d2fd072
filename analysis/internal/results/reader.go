package results

import (
	"maps"
	"math"
	"slices"

	"github.com/dpwatch/dpwatch/analysis/internal/code"
	"github.com/dpwatch/dpwatch/analysis/internal/state"
	"github.com/dpwatch/dpwatch/internal/outcome"
	"github.com/dpwatch/dpwatch/internal/textnumber"
	"github.com/dpwatch/dpwatch/internal/withheld"
)

// Reader turns results into codes by a layout. It gives slots to keys in the order in which they come.
type Reader struct {
	Layout
	MaxKeys  int
	slots    map[string]int     // first slot of a key
	Labels   []withheld.Text    // per key; see GroupName
	Words    []*code.Dictionary // per measure
	errors   *code.Dictionary   // SQLSTATEs
	forms    *code.Dictionary   // see FormCode
	rowForms []uint64           // scratch
	salt     string             // Options.Salt
	stamp    []int              // per key: the reading in which it was seen last
	reading  int
	Order    []int32 // keys of the rows of the latest result, by row
	buf      []byte
	follow   []follower // what is expected after the beginning of a result and after each key; no part of the state
	last     int        // index in follow of the key found last

	Overflow   bool // a key found no slot
	Duplicates bool // a key came twice where it should be unique
}

// NewReader returns a reader for a layout. Keys get at most maxSlots slots together; salt is the secret of the ids of
// keys, and errors numbers the error classes.
func NewReader(l Layout, maxSlots int, salt string, errors *code.Dictionary) *Reader {
	r := &Reader{Layout: l, MaxKeys: max(1, maxSlots/l.Cells()), slots: map[string]int{}, errors: errors, salt: salt, forms: newForms()}
	for range l.Cells() {
		r.Words = append(r.Words, code.NewDictionary(code.FirstText, code.OtherText))
	}
	if !l.Keyed && l.Width >= 0 {
		r.key(nil, 1)
	}
	return r
}

// SlotsUsed returns the number of slots given so far.
func (r *Reader) SlotsUsed() int { return len(r.Labels) * r.Cells() }

// key returns the number of a row's key, or -1 when there is no room for it.
func (r *Reader) key(row []outcome.Value, occurrence int) int {
	if k, ok := r.find(row, occurrence); ok {
		return k
	}
	if len(r.Labels) >= r.MaxKeys {
		r.Overflow = true
		return -1
	}
	k := len(r.Labels)
	r.slots[string(r.buf)] = k
	r.Labels = append(r.Labels, r.keyLabel(row, occurrence))
	r.stamp = append(r.stamp, 0)
	return k
}

// follower is what is remembered of a key to find keys quickly: results mostly hold them in the same order.
type follower struct {
	values     []outcome.Value // of the key; none while it is not known
	occurrence int
	next       int // the key that came after it
}

// is reports whether a row certainly has the key.
func (f *follower) is(row []outcome.Value, columns []int, occurrence int) bool {
	if len(f.values) != len(columns) || f.occurrence != occurrence {
		return false
	}
	for i, c := range columns {
		v := &f.values[i]
		if c >= len(row) || row[c].Kind != v.Kind || row[c].Text != v.Text || math.Float64bits(row[c].Num) != math.Float64bits(v.Num) {
			return false
		}
	}
	return true
}

// find returns the number of a row's key, and whether it has one. Where it has none, its binary form is in the buffer.
func (r *Reader) find(row []outcome.Value, occurrence int) (k int, known bool) {
	if r.last < len(r.follow) {
		if k = r.follow[r.last].next; k+1 < len(r.follow) && r.follow[k+1].is(row, r.Keys, occurrence) {
			r.last = k + 1
			return k, true
		}
	}
	r.buf = appendKey(r.buf[:0], row, r.Keys)
	if r.ordinal {
		r.buf = append(r.buf, byte(occurrence), byte(occurrence>>8))
	}
	if k, known = r.slots[string(r.buf)]; !known {
		return 0, false
	}
	for len(r.follow) < len(r.Labels)+1 {
		r.follow = append(r.follow, follower{})
	}
	r.follow[r.last].next = k
	r.last = k + 1
	if f := &r.follow[r.last]; f.values == nil && len(r.buf) <= code.MaxKeptText && (len(r.Keys) == 0 || slices.Max(r.Keys) < len(row)) {
		f.occurrence = occurrence
		for _, c := range r.Keys {
			f.values = append(f.values, row[c])
		}
	}
	return k, true
}

// maxOccurrences bounds how many rows of one key are distinguished.
const maxOccurrences = 256

// maxOrderRows bounds how many rows of a result have their order kept.
const maxOrderRows = 512

// Filling returns the code of a slot that has no row in a result: absent, or the error or shape of the whole result.
func (r *Reader) Filling(o *outcome.Outcome) code.Code {
	if o.Failed() {
		return r.errors.Code(o.SQLState)
	}
	if w := WidthOf(o); w >= 0 && w != r.Width {
		return code.Category(code.OtherShape)
	}
	return code.Category(code.Absent)
}

// Read writes the codes of a result to dst, which grows with the slots, and returns it. Slots of keys that are not in
// the result are absent; after an error or in another shape all slots have its code.
func (r *Reader) Read(o *outcome.Outcome, dst []code.Code) []code.Code {
	r.reading++
	r.last = 0
	r.Order = r.Order[:0]
	filling := r.Filling(o)
	dst = dst[:min(len(dst), r.SlotsUsed())]
	for i := range dst {
		dst[i] = filling
	}
	for len(dst) < r.SlotsUsed() {
		dst = append(dst, filling)
	}
	if code.CategoryOf(filling) != code.Absent {
		return dst
	}
	for i := range o.Rows {
		row := o.Rows[i]
		k := r.keyOf(row)
		if k < 0 {
			continue
		}
		r.stamp[k] = r.reading
		if len(r.Order) < maxOrderRows {
			r.Order = append(r.Order, int32(k))
		}
		for len(dst) < r.SlotsUsed() {
			dst = append(dst, filling)
		}
		r.readRow(row, dst[k*r.Cells():(k+1)*r.Cells()])
	}
	return dst
}

// keyOf returns the key of a row, -1 for a row that is not read.
func (r *Reader) keyOf(row []outcome.Value) int {
	k := r.key(row, 1)
	if k < 0 || r.stamp[k] != r.reading {
		return k
	}
	if !r.ordinal {
		r.Duplicates = true
		return -1
	}
	for n := 2; n <= maxOccurrences; n++ {
		if k = r.key(row, n); k < 0 || r.stamp[k] != r.reading {
			return k
		}
	}
	return -1
}

// readRow writes the codes of a row's measures.
func (r *Reader) readRow(row []outcome.Value, dst []code.Code) {
	if len(r.Measures) == 0 {
		dst[0] = 1 // present
		return
	}
	for j := 0; j < len(r.Measures); j++ {
		c := r.Measures[j]
		if r.Forms[j].Parts() > 0 {
			missing := outcome.Value{}
			v := &missing
			if c < len(row) {
				v = &row[c]
			}
			r.readForm(v, j, dst)
			j += r.Forms[j].Parts() - 1
			continue
		}
		if c >= len(row) {
			dst[j] = code.Category(code.NullValue)
			continue
		}
		switch v := &row[c]; v.Kind {
		case outcome.Number:
			dst[j] = code.Number(v.Num)
		case outcome.Text:
			dst[j] = r.Words[j].Code(v.Text)
		case outcome.Bool:
			dst[j] = r.Words[j].Code(code.BoolWord(v.Num))
		default:
			dst[j] = code.Category(code.NullValue)
		}
	}
}

// RowsCode returns the score "number of rows", with errors and other shapes as categories.
func (r *Reader) RowsCode(o *outcome.Outcome) code.Code {
	if c := r.Filling(o); code.CategoryOf(c) != code.Absent {
		return c
	}
	return float64(len(o.Rows))
}

// Fingerprint hashes a whole result, by its exact bytes. The order of rows counts unless it has no meaning.
func Fingerprint(o *outcome.Outcome, unordered bool) uint64 {
	h := outcome.HashText(o.Message, uint64(len(o.Rows)))
	if o.Failed() {
		return outcome.HashText(o.SQLState, h) | 1
	}
	for i := range o.Columns {
		h = outcome.Mix(outcome.HashText(o.Columns[i].Name, h), uint64(o.Columns[i].Type))
	}
	for _, row := range o.Rows {
		x := uint64(len(row))
		for i := range row {
			x = outcome.Mix(x, row[i].Hash())
		}
		if unordered {
			h += x * x
		} else {
			h = outcome.Mix(h, x)
		}
	}
	return h
}

// State describes the reader.
func (r *Reader) State(c *state.Codec) {
	c.All(&r.Width, &r.MaxKeys, &r.reading, &r.Keyed, &r.ordinal, &r.Overflow, &r.Duplicates)
	c.Ints(&r.Keys)
	c.Ints(&r.Measures)
	state.List(c, &r.Forms, func(f *textnumber.Form) { formState(c, f) })
	c.Ints(&r.stamp)
	state.List(c, &r.names, c.Text)
	state.List(c, &r.Labels, c.Withheld)
	state.List(c, &r.Words, func(d **code.Dictionary) {
		if c.Reading {
			*d = code.NewDictionary(code.FirstText, code.OtherText)
		}
		(*d).State(c)
		c.Check((*d).First == code.FirstText && (*d).Rest == code.OtherText)
	})
	if c.Reading {
		r.forms = newForms()
	}
	r.forms.State(c)
	c.Check(r.forms.First == code.FirstText && r.forms.Rest == code.OtherText)
	keys := slices.Sorted(maps.Keys(r.slots))
	state.List(c, &keys, func(k *string) {
		c.Text(k)
		v := r.slots[*k]
		state.Num(c, &v)
		c.Check(v >= 0 && v < len(r.Labels))
		if c.Reading && c.Err == nil {
			r.slots[*k] = v
		}
	})
	c.Check(r.Width >= -1 && r.MaxKeys >= 1 && len(r.Labels) <= r.MaxKeys && len(r.stamp) == len(r.Labels))
	c.Check(len(r.Words) == r.Cells() && len(r.slots) == len(r.Labels) && len(r.names) == max(r.Width, 0))
	r.checkForms(c)
	for _, columns := range [][]int{r.Keys, r.Measures} {
		for _, x := range columns {
			c.Check(x >= 0 && x < r.Width)
		}
	}
}
