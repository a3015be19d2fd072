package relay

import (
	"bytes"
	"testing"
)

// FuzzHeaders: the idle watch sees the same messages for any chunking of the stream, and never panics.
func FuzzHeaders(f *testing.F) {
	f.Add([]byte("Z\x00\x00\x00\x05IQ\x00\x00\x00\x04"), 1)
	f.Add([]byte("S\x00\x00\x00\x04D\xff\xff\xff\xff"), 3)
	f.Fuzz(func(t *testing.T, in []byte, size int) {
		collect := func(step int) []byte {
			var got []byte
			h := headers{each: func(typ, first byte) { got = append(got, typ, first) }}
			for rest := in; len(rest) > 0; {
				n := min(step, len(rest))
				h.walk(rest[:n])
				rest = rest[n:]
			}
			return got
		}
		if whole, cut := collect(max(1, len(in))), collect(max(1, min(size, 64))); !bytes.Equal(whole, cut) {
			t.Errorf("whole %q, cut %q", whole, cut)
		}
	})
}
