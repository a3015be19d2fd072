package startup

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"

	"github.com/pires/go-proxyproto"
)

// Sizes of PROXY protocol headers, in bytes (haproxy.org, proxy-protocol.txt, 2.1 and 2.2). A v2 header can announce 64
// KiB of extensions; senders use a few hundred bytes.
const (
	maxProxyV1   = 107
	fixedProxyV2 = 16
	maxProxyV2   = 4 << 10
)

// trusts reports whether a peer's connections must begin with a PROXY protocol header.
func (l *Legs) trusts(peer net.Addr) bool {
	tcp, ok := peer.(*net.TCPAddr)
	if !ok {
		return false
	}
	ip := tcp.AddrPort().Addr().Unmap().WithZone("")
	return slices.ContainsFunc(l.opts.ProxyProtocol, func(network netip.Prefix) bool { return network.Contains(ip) })
}

// proxyHeader reads the header and records the client's address.
func (p *packetReader) proxyHeader(start *Client) error {
	for {
		n, err := proxyHeaderLength(p.buf)
		if err != nil {
			return &RefusedError{noProxyHeader(err)}
		}
		if n > 0 && len(p.buf) >= n {
			header, err := proxyproto.Read(bufio.NewReaderSize(bytes.NewReader(p.buf[:n]), maxProxyV2))
			if err != nil {
				return &RefusedError{noProxyHeader(fmt.Errorf("PROXY protocol header: %w", err))}
			}
			if header.SourceAddr != nil && header.Command.IsProxy() {
				start.Peer = header.SourceAddr
			}
			p.buf = p.buf[n:]
			return nil
		}
		if err := p.fill(); err != nil {
			return err
		}
	}
}

// errNoProxyHeader means that a trusted peer sent no header.
var errNoProxyHeader = errors.New("no PROXY protocol header, but connections from this network must begin with one")

// proxyHeaderLength returns the length of the header at the start of b, 0 while unknown.
func proxyHeaderLength(b []byte) (int, error) {
	v1, v2 := []byte("PROXY "), proxyproto.SIGV2
	switch {
	case bytes.HasPrefix(b, v2):
		if len(b) < fixedProxyV2 {
			return 0, nil
		}
		n := fixedProxyV2 + int(binary.BigEndian.Uint16(b[14:]))
		if n > maxProxyV2 {
			return 0, fmt.Errorf("PROXY protocol header of %d bytes", n)
		}
		return n, nil
	case bytes.HasPrefix(b, v1):
		if i := bytes.Index(b, []byte("\r\n")); i >= 0 && i+2 <= maxProxyV1 {
			return i + 2, nil
		} else if i >= 0 || len(b) >= maxProxyV1 {
			return 0, errors.New("unterminated PROXY protocol header")
		}
		return 0, nil
	case bytes.HasPrefix(v1, b), bytes.HasPrefix(v2, b):
		return 0, nil
	}
	return 0, errNoProxyHeader
}
