package startup

import (
	"bytes"
	"encoding/binary"
	"io"
	"net"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
)

type readConn struct {
	net.Conn
	io.Reader
}

func (c readConn) Read(b []byte) (int, error) { return c.Reader.Read(b) }

func msg(typ byte, body string) string {
	return string(append(binary.BigEndian.AppendUint32([]byte{typ}, uint32(len(body)+4)), body...))
}

func sasl(mechanisms string) string { return msg('R', "\x00\x00\x00\x0a"+mechanisms) }

const (
	offerBoth  = "SCRAM-SHA-256-PLUS\x00SCRAM-SHA-256\x00\x00"
	offerPlain = "SCRAM-SHA-256\x00\x00"
)

// TestPlusFilter: exactly one mechanism is removed, from exactly one message.
func TestPlusFilter(t *testing.T) {
	t.Parallel()
	version := msg('v', "\x00\x03\x00\x00\x00\x00\x00\x00")
	tests := []struct{ name, in, want string }{
		{"both offered", sasl(offerBoth) + "rest", sasl(offerPlain) + "rest"},
		{"the other order", sasl("SCRAM-SHA-256\x00SCRAM-SHA-256-PLUS\x00\x00"), sasl(offerPlain)},
		{"a third one stays", sasl("OAUTHBEARER\x00SCRAM-SHA-256-PLUS\x00SCRAM-SHA-256\x00\x00"), sasl("OAUTHBEARER\x00" + offerPlain)},
		{"behind NegotiateProtocolVersion and a notice", version + msg('N', "notice") + sasl(offerBoth), version + msg('N', "notice") + sasl(offerPlain)},
		{"not offered", sasl(offerPlain), sasl(offerPlain)},
		{"nothing else offered", sasl("SCRAM-SHA-256-PLUS\x00\x00"), sasl("SCRAM-SHA-256-PLUS\x00\x00")},
		{"a longer name", sasl("SCRAM-SHA-256-PLUSX\x00SCRAM-SHA-256\x00\x00"), sasl("SCRAM-SHA-256-PLUSX\x00SCRAM-SHA-256\x00\x00")},
		{"no end of the list", sasl("SCRAM-SHA-256-PLUS\x00SCRAM-SHA-256\x00"), sasl("SCRAM-SHA-256-PLUS\x00SCRAM-SHA-256\x00")},
		{"bytes behind the list", sasl(offerBoth + "x"), sasl(offerBoth + "x")},
		{"another authentication", msg('R', "\x00\x00\x00\x05salt") + sasl(offerBoth), msg('R', "\x00\x00\x00\x05salt") + sasl(offerBoth)},
		{"not twice", sasl(offerBoth) + sasl(offerBoth), sasl(offerPlain) + sasl(offerBoth)},
		{"in a data row", msg('D', "x") + sasl(offerBoth), msg('D', "x") + sasl(offerBoth)},
		{"an error", msg('E', "SFATAL\x00\x00"), msg('E', "SFATAL\x00\x00")},
		{"cut short", sasl(offerBoth)[:20], sasl(offerBoth)[:20]},
		{"impossible length", "R\x00\x00\x00\x03rest", "R\x00\x00\x00\x03rest"},
		{"gigabytes announced", "R\x3f\xff\xff\xff" + "rest", "R\x3f\xff\xff\xff" + "rest"},
		{"nothing", "", ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			for name, reader := range map[string]io.Reader{
				"at once": bytes.NewReader([]byte(test.in)), "bytewise": iotest.OneByteReader(bytes.NewReader([]byte(test.in))),
				"with the end": iotest.DataErrReader(bytes.NewReader([]byte(test.in))),
			} {
				got, err := io.ReadAll(iotest.OneByteReader(&scramPlusFilter{Conn: readConn{nil, reader}}))
				if err != nil {
					t.Errorf("%s: %v", name, err)
				}
				if diff := cmp.Diff(test.want, string(got)); diff != "" {
					t.Errorf("%s: %s", name, diff)
				}
			}
		})
	}
}

// TestPlusFilterExplains: the engine's error is replaced only for a client that sent the flag, only directly after the
// offer, and only if it has the code of that fault.
func TestPlusFilterExplains(t *testing.T) {
	t.Parallel()
	instead, err := unboundClient.encode()
	if err != nil {
		t.Fatal(err)
	}
	refused := msg('E', "SFATAL\x00C28000\x00Mnegotiation error\x00\x00")
	timeout := msg('E', "SFATAL\x00C57014\x00Mtimeout\x00\x00")
	answer := func(mechanism, data string) string {
		return msg('p', mechanism+"\x00\x00\x00\x00"+string(rune(len(data)))+data)
	}
	const yes = "y,,n=,r=nonce"
	tests := []struct{ name, client, in, want string }{
		{"the flag y", answer(plainMechanism, yes), refused, string(instead)},
		{"behind a notice", answer(plainMechanism, yes), msg('N', "notice") + refused, msg('N', "notice") + string(instead)},
		{"another error", answer(plainMechanism, yes), timeout, timeout},
		{"accepted", answer(plainMechanism, yes), msg('R', "\x00\x00\x00\x0b") + refused, msg('R', "\x00\x00\x00\x0b") + refused},
		{"no error message", answer(plainMechanism, yes), msg('E', "C28000"), msg('E', "C28000")},
		{"cut short", answer(plainMechanism, yes), refused[:20], refused[:20]},
		{"too long", answer(plainMechanism, yes), msg('E', "C28000\x00M"+strings.Repeat("x", maxAuthError)+"\x00\x00"), msg('E', "C28000\x00M"+strings.Repeat("x", maxAuthError)+"\x00\x00")},
		{"the flag n", answer(plainMechanism, "n,,n=,r=nonce"), refused, refused},
		{"another mechanism", answer("SCRAM-SHA-512", yes), refused, refused},
		{"a query", msg('Q', plainMechanism+"\x00\x00\x00\x00\x01y"), refused, refused},
		{"a few bytes", "p", refused, refused},
		{"nothing", "", refused, refused},
	}
	for _, test := range tests {
		for _, size := range []int{1, 7, 1 << 20} {
			sent := bytes.Buffer{}
			f := &scramPlusFilter{Conn: readWriteConn{readConn{nil, bytes.NewReader([]byte(sasl(offerBoth)))}, &sent}}
			if _, err := f.Write([]byte("startup message")); err != nil {
				t.Fatal(err)
			}
			if _, err := io.ReadFull(f, make([]byte, len(sasl(offerPlain)))); err != nil {
				t.Fatal(err)
			}
			for b := range slices.Chunk([]byte(test.client), size) {
				if n, err := f.Write(b); n != len(b) || err != nil {
					t.Fatal(n, err)
				}
			}
			f.Conn = readWriteConn{readConn{nil, &cutReader{[]byte(test.in), size}}, &sent}
			got, err := io.ReadAll(f)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, string(got)); diff != "" {
				t.Errorf("%s, pieces of %d: %s", test.name, size, diff)
			}
			if sent.String() != "startup message"+test.client {
				t.Errorf("%s: the engine receives %q", test.name, sent.String())
			}
		}
	}
}

type readWriteConn struct {
	readConn
	w io.Writer
}

func (c readWriteConn) Write(b []byte) (int, error) { return c.w.Write(b) }

// FuzzPlusFilter: for any bytes from the engine, in any chunks, the filter's output is the same as for one chunk, and
// differs from the input at most by the removed mechanism.
func FuzzPlusFilter(f *testing.F) {
	f.Add([]byte(sasl(offerBoth)+"rest"), 3)
	f.Add([]byte(msg('N', "notice")+sasl(offerBoth)), 1)
	f.Add([]byte("v\xff\xff\xff\xff"), 2)
	f.Fuzz(func(t *testing.T, in []byte, size int) {
		whole, err := io.ReadAll(&scramPlusFilter{Conn: readConn{nil, bytes.NewReader(in)}})
		if err != nil {
			t.Fatal(err)
		}
		cut, err := io.ReadAll(&scramPlusFilter{Conn: readConn{nil, &cutReader{in, max(1, min(size, 64))}}})
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(whole, cut) {
			t.Errorf("%q becomes %q whole and %q cut", in, whole, cut)
		}
		if gone := len(in) - len(whole); !bytes.Equal(in, whole) && (gone <= 0 || gone%(len(plusMechanism)+1) != 0) {
			t.Errorf("%q became %q", in, whole)
		}
	})
}

// cutReader reads a few bytes at a time.
type cutReader struct {
	rest []byte
	size int
}

func (r *cutReader) Read(b []byte) (int, error) {
	if len(r.rest) == 0 {
		return 0, io.EOF
	}
	n := copy(b, r.rest[:min(r.size, len(r.rest))])
	r.rest = r.rest[n:]
	return n, nil
}
