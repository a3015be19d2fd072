package analysis

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/dpwatch/dpwatch/internal/withheld"
)

// codec writes or reads a state: one description of the state serves both, so that they cannot differ. After the first
// fault it does nothing more; reading then leaves zeros.
type codec struct {
	reading bool
	buf     []byte // what was written, or is left to read
	err     error

	slots, groups int // of the audit, once they are read: parts refer to them by number
	shared        any // what the parts to come may share with an earlier one
}

var errState = errors.New("the saved state is cut off or damaged: start the audit anew")

func (c *codec) fail() {
	if c.err == nil {
		c.err = errState
	}
}

// check fails unless a condition on what was read holds.
func (c *codec) check(ok bool) {
	if c.reading && !ok {
		c.fail()
	}
}

func (c *codec) u64(x *uint64) {
	switch {
	case !c.reading:
		c.buf = binary.LittleEndian.AppendUint64(c.buf, *x)
	case c.err != nil || len(c.buf) < 8:
		c.fail()
		*x = 0
	default:
		*x, c.buf = binary.LittleEndian.Uint64(c.buf), c.buf[8:]
	}
}

// num is an integer of any kind, as a varint.
func num[T ~int | ~int32 | ~uint8 | ~uint16](c *codec, x *T) {
	if !c.reading {
		c.buf = binary.AppendVarint(c.buf, int64(*x))
		return
	}
	v, n := binary.Varint(c.buf)
	if c.err != nil || n <= 0 || int64(T(v)) != v {
		c.fail()
		*x = 0
		return
	}
	*x, c.buf = T(v), c.buf[n:]
}

func (c *codec) float(x *float64) {
	b := math.Float64bits(*x)
	c.u64(&b)
	if c.reading {
		*x = math.Float64frombits(b)
	}
}

func (c *codec) bool(x *bool) {
	v := uint8(0)
	if *x {
		v = 1
	}
	num(c, &v)
	c.check(v <= 1)
	*x = v == 1
}

func (c *codec) text(s *string) {
	b := []byte(*s)
	list(c, &b, func(x *byte) {
		if !c.reading {
			c.buf = append(c.buf, *x)
		} else if len(c.buf) > 0 {
			*x, c.buf = c.buf[0], c.buf[1:]
		} else {
			c.fail()
		}
	})
	if c.reading {
		*s = string(b)
	}
}

// withheld is a text with both of its forms.
func (c *codec) withheld(t *withheld.Text) {
	value, public := t.Reveal(), t.String()
	c.text(&value)
	c.text(&public)
	if c.reading {
		*t = withheld.New(value, public)
	}
}

// all describes parts of a state, in order.
func (c *codec) all(parts ...any) {
	for _, p := range parts {
		switch p := p.(type) {
		case *int:
			num(c, p)
		case *int32:
			num(c, p)
		case *uint64:
			c.u64(p)
		case *float64:
			c.float(p)
		case *bool:
			c.bool(p)
		case *string:
			c.text(p)
		case *[]float64:
			c.floats(p)
		default:
			panic(fmt.Sprintf("a state has no form for %T", p))
		}
	}
}

// list is a slice. Every element takes at least a byte, so that a length beyond what is left is refused before anything
// is made. An empty slice is read as nil.
func list[T any](c *codec, s *[]T, each func(*T)) {
	n := len(*s)
	num(c, &n)
	if c.reading {
		*s = nil
		if n < 0 || n > len(c.buf) {
			c.fail()
			return
		}
	}
	for i := range n {
		if c.reading {
			if c.err != nil {
				return
			}
			var zero T
			*s = append(*s, zero)
		}
		each(&(*s)[i])
	}
}

func (c *codec) floats(s *[]float64) { list(c, s, c.float) }

func (c *codec) ints(s *[]int) { list(c, s, func(x *int) { num(c, x) }) }

// counts are never negative.
func (c *codec) counts(s *[]int32) {
	list(c, s, c.count)
}

func (c *codec) count(x *int32) {
	num(c, x)
	c.check(*x >= 0)
}

// tally is a fixed number of counts.
func (c *codec) tally(s []int32) {
	for i := range s {
		c.count(&s[i])
	}
}

// optional is a part that may be missing.
func (c *codec) optional(there bool, alloc, body func()) {
	c.bool(&there)
	if !there || c.err != nil {
		return
	}
	if c.reading {
		alloc()
	}
	body()
}
