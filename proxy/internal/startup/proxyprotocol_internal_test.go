package startup

import (
	"bytes"
	"errors"
	"io"
	"net"
	"testing"
)

// FuzzProxyHeader: for any bytes in any chunks, the header is consumed once and whole, and the bytes after it are
// unchanged.
func FuzzProxyHeader(f *testing.F) {
	f.Add([]byte("PROXY TCP4 203.0.113.7 127.0.0.1 8080 5432\r\nrest"), 3)
	f.Add([]byte("PROXY UNKNOWN\r\n"), 1)
	f.Add([]byte("\r\n\r\n\x00\r\nQUIT\n\x21\x11\x00\x0c\xcb\x00\x71\x07\x7f\x00\x00\x01\x1f\x90\x15\x38rest"), 5)
	f.Add([]byte("\r\n\r\n\x00\r\nQUIT\n\x20\x00\xff\xff"), 2)
	f.Fuzz(func(t *testing.T, in []byte, size int) {
		read := func(r io.Reader) (string, string, error) {
			start := &Client{Peer: &net.TCPAddr{}}
			p := packetReader{conn: readConn{nil, r}}
			if err := p.proxyHeader(start); err != nil {
				return "", "", err
			}
			rest, _ := io.ReadAll(r)
			return start.Peer.String(), string(append(p.buf, rest...)), nil
		}
		peer, rest, err := read(bytes.NewReader(in))
		cutPeer, cutRest, cutErr := read(&cutReader{in, max(1, min(size, 64))})
		if peer != cutPeer || rest != cutRest || (err == nil) != (cutErr == nil) {
			t.Errorf("%q: whole %q %q %v, cut %q %q %v", in, peer, rest, err, cutPeer, cutRest, cutErr)
		}
		if err == nil && !bytes.HasSuffix(in, []byte(rest)) {
			t.Errorf("%q left %q", in, rest)
		}
		if errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("%q: an error that tells a client nothing: %v", in, err)
		}
	})
}
