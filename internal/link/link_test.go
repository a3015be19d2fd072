package link_test

import (
	"bytes"
	"errors"
	"io"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"

	"github.com/dpwatch/dpwatch/internal/link"
)

func TestRoundTrip(t *testing.T) {
	t.Parallel()
	var wire bytes.Buffer
	w := link.NewWriter(&wire)
	sent := []string{"", "x", string(bytes.Repeat([]byte("long"), 1<<16))}
	for _, s := range sent {
		if err := w.Send(link.Query, []byte(s)); err != nil {
			t.Fatal(err)
		}
	}
	r := link.NewReader(iotest.OneByteReader(&wire))
	for _, want := range sent {
		kind, got, err := r.Next()
		if err != nil || kind != link.Query {
			t.Fatalf("Next = %q, %v", kind, err)
		}
		if diff := cmp.Diff(want, string(got)); diff != "" {
			t.Error(diff)
		}
	}
	if _, _, err := r.Next(); !errors.Is(err, io.EOF) {
		t.Errorf("at the end: %v, want io.EOF", err)
	}
}

// TestBatch: frames sent in a batch are read like frames sent one by one.
func TestBatch(t *testing.T) {
	t.Parallel()
	var wire bytes.Buffer
	w := link.NewWriter(&wire)
	var b link.Batch
	for range 2 { // a batch can be reused
		for _, s := range []string{"", "one", "two"} {
			if !b.Add(link.Query, func(to []byte) []byte { return append(to, s...) }) {
				t.Fatal("not added")
			}
		}
		if b.Add(link.Query, func(to []byte) []byte { return append(to, make([]byte, link.MaxFrameBytes)...) }) {
			t.Error("a frame that no Reader takes was added")
		}
		if err := w.SendBatch(&b); err != nil || b.Len() != 0 {
			t.Fatalf("%v, %d bytes left", err, b.Len())
		}
	}
	r := link.NewReader(&wire)
	for _, want := range []string{"", "one", "two", "", "one", "two"} {
		if kind, got, err := r.Next(); err != nil || kind != link.Query || string(got) != want {
			t.Fatalf("Next = %q %q, %v; want %q", kind, got, err, want)
		}
	}
}

func TestTorn(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ name, wire string }{
		{"header cut", "\x00\x00"},
		{"body cut", "\x00\x00\x00\x05Qab"},
		{"length zero", "\x00\x00\x00\x00Q"},
		{"length beyond the cap", "\xff\xff\xff\xffQ"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			_, _, err := link.NewReader(bytes.NewReader([]byte(tc.wire))).Next()
			if err == nil || errors.Is(err, io.EOF) {
				t.Errorf("got %v, want an error that is not a clean end", err)
			}
		})
	}
}

func TestSendRefusesWhatNextWould(t *testing.T) {
	t.Parallel()
	if err := link.NewWriter(io.Discard).Send(link.Status, make([]byte, link.MaxFrameBytes)); err == nil {
		t.Error("a frame beyond the cap was sent")
	}
}

// TestErrors: the error of the connection is that of Next, also within a frame.
func TestErrors(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	for _, begun := range []string{"", "\x00\x00", "\x00\x00\x00\x05Qab"} {
		r := link.NewReader(io.MultiReader(bytes.NewReader([]byte(begun)), iotest.ErrReader(broken)))
		if _, _, err := r.Next(); !errors.Is(err, broken) {
			t.Errorf("after %q: %v, want the error of the connection", begun, err)
		}
	}
}
