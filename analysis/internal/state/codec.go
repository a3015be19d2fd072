package state

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/dpwatch/dpwatch/internal/withheld"
)

// Codec writes or reads a state: one description of the state serves both, so that they cannot differ. After the first
// fault it does nothing more; reading then leaves zeros.
type Codec struct {
	Reading bool
	Buf     []byte // what was written, or is left to read
	Err     error

	Slots, Groups int // of the audit, once they are read: parts refer to them by number
	Shared        any // what the parts to come may share with an earlier one
}

// ErrDamaged is returned for a state that cannot be read.
var ErrDamaged = errors.New("the saved state is cut off or damaged: restart the audit")

// Fail records that the state is damaged.
func (c *Codec) Fail() {
	if c.Err == nil {
		c.Err = ErrDamaged
	}
}

// Check fails unless a condition on what was read holds.
func (c *Codec) Check(ok bool) {
	if c.Reading && !ok {
		c.Fail()
	}
}

// U64 describes 64 bits.
func (c *Codec) U64(x *uint64) {
	switch {
	case !c.Reading:
		c.Buf = binary.LittleEndian.AppendUint64(c.Buf, *x)
	case c.Err != nil || len(c.Buf) < 8:
		c.Fail()
		*x = 0
	default:
		*x, c.Buf = binary.LittleEndian.Uint64(c.Buf), c.Buf[8:]
	}
}

// Num is an integer of any kind, as a varint.
func Num[T ~int | ~int32 | ~uint8 | ~uint16](c *Codec, x *T) {
	if !c.Reading {
		c.Buf = binary.AppendVarint(c.Buf, int64(*x))
		return
	}
	v, n := binary.Varint(c.Buf)
	if c.Err != nil || n <= 0 || int64(T(v)) != v {
		c.Fail()
		*x = 0
		return
	}
	*x, c.Buf = T(v), c.Buf[n:]
}

// Float describes a number, bit by bit.
func (c *Codec) Float(x *float64) {
	b := math.Float64bits(*x)
	c.U64(&b)
	if c.Reading {
		*x = math.Float64frombits(b)
	}
}

// Bool describes a flag.
func (c *Codec) Bool(x *bool) {
	v := uint8(0)
	if *x {
		v = 1
	}
	Num(c, &v)
	c.Check(v <= 1)
	*x = v == 1
}

// Text describes a string.
func (c *Codec) Text(s *string) {
	b := []byte(*s)
	List(c, &b, func(x *byte) {
		if !c.Reading {
			c.Buf = append(c.Buf, *x)
		} else if len(c.Buf) > 0 {
			*x, c.Buf = c.Buf[0], c.Buf[1:]
		} else {
			c.Fail()
		}
	})
	if c.Reading {
		*s = string(b)
	}
}

// Withheld is a text with both of its forms.
func (c *Codec) Withheld(t *withheld.Text) {
	value, public := t.Reveal(), t.String()
	c.Text(&value)
	c.Text(&public)
	if c.Reading {
		*t = withheld.New(value, public)
	}
}

// All describes parts of a state, in order.
func (c *Codec) All(parts ...any) {
	for _, p := range parts {
		switch p := p.(type) {
		case *int:
			Num(c, p)
		case *int32:
			Num(c, p)
		case *uint64:
			c.U64(p)
		case *float64:
			c.Float(p)
		case *bool:
			c.Bool(p)
		case *string:
			c.Text(p)
		case *[]float64:
			c.Floats(p)
		default:
			panic(fmt.Sprintf("a state has no form for %T", p))
		}
	}
}

// List is a slice. Every element takes at least a byte, so that a length beyond what is left is refused before anything
// is made. An empty slice is read as nil.
func List[T any](c *Codec, s *[]T, each func(*T)) {
	n := len(*s)
	Num(c, &n)
	if c.Reading {
		*s = nil
		if n < 0 || n > len(c.Buf) {
			c.Fail()
			return
		}
	}
	for i := range n {
		if c.Reading {
			if c.Err != nil {
				return
			}
			var zero T
			*s = append(*s, zero)
		}
		each(&(*s)[i])
	}
}

// Floats describes a list of numbers.
func (c *Codec) Floats(s *[]float64) { List(c, s, c.Float) }

// Ints describes a list of integers.
func (c *Codec) Ints(s *[]int) { List(c, s, func(x *int) { Num(c, x) }) }

// Counts are never negative.
func (c *Codec) Counts(s *[]int32) {
	List(c, s, c.count)
}

func (c *Codec) count(x *int32) {
	Num(c, x)
	c.Check(*x >= 0)
}

// Tally is a fixed number of counts.
func (c *Codec) Tally(s []int32) {
	for i := range s {
		c.count(&s[i])
	}
}

// Optional is a part that may be missing.
func (c *Codec) Optional(there bool, alloc, body func()) {
	c.Bool(&there)
	if !there || c.Err != nil {
		return
	}
	if c.Reading {
		alloc()
	}
	body()
}

// Made returns what a pointer refers to; when a state is read, a new zero value.
func Made[T any](c *Codec, p **T) *T {
	if c.Reading {
		*p = new(T)
	}
	return *p
}
