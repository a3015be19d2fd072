package tap

import (
	"bytes"
	"encoding/binary"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/dpwatch/dpwatch/internal/capture"
	"github.com/dpwatch/dpwatch/proxy/internal/tracker"
	"github.com/dpwatch/dpwatch/proxy/internal/wire"
)

func typed(typ byte, body string) []byte {
	return append(binary.BigEndian.AppendUint32([]byte{typ}, uint32(len(body)+4)), body...)
}

type discard struct{}

func (discard) Offer(capture.Query) bool { return true }

// newTapped returns the capture state of a session without a drainer.
func newTapped(budget int) *Session {
	o := Options{Sink: discard{}, ClaimPrefix: "dp", BudgetBytes: budget, MaxStatementBytes: 16 << 10, Interval: time.Hour, Logger: zap.NewNop()}
	return NewDrainer(o).Open(1, tracker.Startup{Version: 3 << 16})
}

// records returns the records in a tap, including partial ones.
func (t *tap) records() []byte {
	if t.buf == nil {
		return nil
	}
	return t.buf.b
}

// FuzzWalk: the tap's records do not depend on how the stream is cut into chunks.
func FuzzWalk(f *testing.F) {
	session := join(typed('Q', "SELECT 1\x00"), typed('P', "\x00SELECT $1\x00\x00\x00"), typed('d', strings.Repeat("x", 300)), typed('S', ""))
	f.Add(session, []byte{1, 4, 5, 9, 200})
	f.Add(join(typed('T', "\x00\x00"), typed('D', "\x00\x00"), typed('Z', "I")), []byte{})
	f.Add(join(typed('N', "SINFO\x00Mdp.epsilon=2\x00\x00"), typed('N', ""), typed('D', "Mdp.epsilon=3\x00"), typed('S', "dp.rho\x001\x00"), typed('C', "SELECT 1\x00")), []byte{3, 9, 5})
	f.Add([]byte("Q\x00\x00\x00\x03"), []byte{2})
	f.Add([]byte("Q\x7f\xff\xff\xffabc"), []byte{3, 3})
	f.Add([]byte("!!!!!!!!"), []byte{1, 1, 1, 1})
	f.Fuzz(func(t *testing.T, stream, cuts []byte) {
		walk := func(chunks [][]byte, toServer bool) []byte {
			side := newTapped(16 << 10)
			client, server := side.Walkers()
			w, tapOf := server, &side.server
			if toServer {
				w, tapOf = client, &side.client
			}
			w.stamps = false // times differ
			for _, chunk := range chunks {
				w.Walk(chunk)
			}
			return tapOf.records()
		}
		for _, toServer := range []bool{true, false} {
			whole, pieces := walk([][]byte{stream}, toServer), walk(cutUp(stream, cuts), toServer)
			if !bytes.Equal(whole, pieces) {
				t.Fatalf("records differ:\n%q\n%q", whole, pieces)
			}
		}
	})
}

func join(parts ...[]byte) []byte { return bytes.Join(parts, nil) }

// cutUp cuts b into pieces of the given lengths; the last piece is the rest.
func cutUp(b, lengths []byte) [][]byte {
	var out [][]byte
	for _, n := range lengths {
		k := min(int(n)+1, len(b))
		if k == 0 {
			break
		}
		out = append(out, b[:k])
		b = b[k:]
	}
	if len(b) > 0 {
		out = append(out, b)
	}
	return out
}

// TestTakeMovesPartialRecord: the drainer takes whole records while a body is still incomplete.
func TestTakeMovesPartialRecord(t *testing.T) {
	t.Parallel()
	side := newTapped(16 << 10)
	client, _ := side.Walkers()
	stream := join(typed('S', ""), typed('Q', "SELECT 1\x00"), typed('S', ""))
	var got []byte
	for i := range stream {
		client.Walk(stream[i : i+1])
		if b := side.client.take(); b != nil {
			got = append(got, b.b...)
			side.client.pool.give(b)
		}
	}
	want := tracker.AppendHeader(nil, 'S', 0)
	want = append(tracker.AppendHeader(want, 'Q', 9), "SELECT 1\x00"...)
	want = tracker.AppendHeader(want, 'S', 0)
	if !bytes.Equal(got, want) {
		t.Errorf("got %q\nwant %q", got, want)
	}
}

// TestTapIsBounded: without a drainer, bodies are left out first, then a gap begins; memory stays below the budget. The
// gap ends when the session is idle.
func TestTapIsBounded(t *testing.T) {
	t.Parallel()
	const budget = 8 << 10
	side := newTapped(budget)
	client, server := side.Walkers()
	ready := join(typed('C', "SELECT 1\x00"), typed('Z', "I"))
	server.Walk(typed('Z', "I")) // the end of the startup
	query := typed('Q', "SELECT '"+strings.Repeat("x", 500)+"'\x00")
	cut, sent := 0, 0
	for ; !side.client.lost; sent++ {
		if sent > budget {
			t.Fatal("the tap took more messages than fit")
		}
		before := len(side.client.records())
		client.Walk(query)
		if grown := len(side.client.records()) - before; grown > 0 && grown < len(query) {
			cut++
		}
		if size := len(side.client.records()); size > budget {
			t.Fatalf("%d bytes in the tap, the budget is %d", size, budget)
		}
	}
	if side.stopped.Load() || cut == 0 {
		t.Errorf("stopped %v with %d messages cut; want a gap, and some", side.stopped.Load(), cut)
	}
	client.Walk(query[:300])
	for _, tap := range []*tap{&side.client, &side.server} {
		tap.pool.give(tap.take())
	}
	report := typed('S', "client_encoding\x00UTF8\x00")
	for i := range report {
		server.Walk(report[i : i+1])
	}
	for range sent {
		server.Walk(ready)
	}
	if !side.client.lost {
		t.Error("the gap ended within a message of the client")
	}
	client.Walk(query[300:])
	server.Walk(ready[:len(ready)-1])
	if !side.client.lost || len(side.client.records())+len(side.server.records()) > 0 {
		t.Error("the gap ended within a message of the server, or a message in it was recorded")
	}
	server.Walk(ready[len(ready)-1:])
	if side.client.lost || side.server.lost {
		t.Fatal("the gap goes on while nothing is under way")
	}
	client.Walk(query)
	resume := tracker.AppendResume(nil, tracker.Gap{})
	if want := join(resume, tracker.AppendHeader(nil, 'Q', len(query)-wire.HeaderLen), query[wire.HeaderLen:]); !bytes.Equal(side.client.records(), want) {
		t.Errorf("recorded behind the gap: %q", side.client.records())
	}
	want := join(tracker.AppendHeader(nil, 'S', len(report)-wire.HeaderLen), report[wire.HeaderLen:], resume)
	if b := side.server.records(); !bytes.Equal(b, want) {
		t.Errorf("recorded at the end of the gap: %q; want the report", b)
	}
	if n := side.missed.Load(); n != uint64(sent)+1 {
		t.Errorf("%d statements were missed, want %d", n, sent+1)
	}
}

// TestGapTakesAReport: a gap that begins inside a ParameterStatus keeps what the tracker needs of it.
func TestGapTakesAReport(t *testing.T) {
	t.Parallel()
	side := newTapped(8 << 10)
	_, server := side.Walkers()
	report := typed('S', "client_encoding\x00UTF8\x00")
	server.Walk(report[:10])
	side.lose()
	server.Walk(join(report[10:], typed('S', "other\x00"+strings.Repeat("x", 2000)+"\x00"), typed('Z', "I")))
	want := join(tracker.AppendGap(nil), tracker.AppendHeader(nil, 'S', len(report)-wire.HeaderLen), report[wire.HeaderLen:], tracker.AppendResume(nil, tracker.Gap{}))
	if b := side.server.records(); !bytes.Equal(b, want) {
		t.Errorf("recorded %q\nwant %q", b, want)
	}
}

func BenchmarkWalk(b *testing.B) {
	side := newTapped(256 << 10)
	_, server := side.Walkers()
	row := typed('D', "\x00\x02\x00\x00\x00\x041234\x00\x00\x00\x051.234")
	chunk := bytes.Repeat(row, (32<<10)/len(row))
	b.SetBytes(int64(len(chunk)))
	b.ReportAllocs()
	for b.Loop() {
		server.Walk(chunk)
	}
}
