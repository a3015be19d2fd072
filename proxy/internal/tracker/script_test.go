package tracker_test

import (
	"encoding/binary"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dpwatch/dpwatch/internal/capture"
	"github.com/dpwatch/dpwatch/proxy/internal/tracker"
)

// script holds the records of a session, each direction in order.
type script struct {
	client, server [][]byte
	states         bool // the engine states claims
}

func record(typ byte, body string) []byte {
	return append(tracker.AppendHeader(nil, typ, len(body)), body...)
}

// newScript begins after authentication.
func newScript() *script {
	s := &script{}
	return s.status("client_encoding", "UTF8").status("standard_conforming_strings", "on").ready('I')
}

func (s *script) front(typ byte, body string) *script {
	s.client = append(s.client, record(typ, body))
	return s
}

func (s *script) back(typ byte, body string) *script {
	s.server = append(s.server, record(typ, body))
	return s
}

func (s *script) frontCut(typ byte, prefix string) *script {
	s.client = append(s.client, append(tracker.AppendCut(nil, typ, len(prefix)), prefix...))
	return s
}

func (s *script) query(sql string) *script    { return s.front('Q', sql+"\x00") }
func (s *script) complete(tag string) *script { return s.back('C', tag+"\x00") }
func (s *script) ready(status byte) *script   { return s.back('Z', string(status)) }
func (s *script) fail() *script               { return s.back('E', "") }
func (s *script) failWith(state string) *script {
	return s.back('E', "SFEHLER\x00VERROR\x00C"+state+"\x00Mdivision\x00W10\x00\x00")
}

// failAt is an error of parsing or analysis.
func (s *script) failAt(state string) *script {
	return s.back('E', "SFEHLER\x00VERROR\x00C"+state+"\x00Mrelation\x00P10\x00\x00")
}

// failAtCut is failAt with a long message, of which only the beginning is recorded.
func (s *script) failAtCut(state string) *script {
	body := "SFEHLER\x00VERROR\x00C" + state + "\x00Mrelation"
	r := append(tracker.AppendCut(nil, 'E', len(body)), body...)
	tracker.Place(r)
	s.server = append(s.server, r)
	return s
}
func (s *script) status(name, v string) *script     { return s.back('S', name+"\x00"+v+"\x00") }
func (s *script) execute(portal string) *script     { return s.front('E', portal+"\x00\x00\x00\x00\x00") }
func (s *script) sync() *script                     { return s.front('S', "") }
func (s *script) close(what byte, n string) *script { return s.front('C', string(what)+n+"\x00") }

func (s *script) parse(name, sql string, oids ...uint32) *script {
	b := []byte(name + "\x00" + sql + "\x00")
	b = binary.BigEndian.AppendUint16(b, uint16(len(oids)))
	for _, oid := range oids {
		b = binary.BigEndian.AppendUint32(b, oid)
	}
	return s.front('P', string(b))
}

// null represents NULL among the parameters of bind.
const null = "\x00null"

func bindBody(portal, statement string, formats []uint16, params []string, results []uint16) string {
	b := []byte(portal + "\x00" + statement + "\x00")
	b = binary.BigEndian.AppendUint16(b, uint16(len(formats)))
	for _, f := range formats {
		b = binary.BigEndian.AppendUint16(b, f)
	}
	b = binary.BigEndian.AppendUint16(b, uint16(len(params)))
	for _, p := range params {
		if p == null {
			b = binary.BigEndian.AppendUint32(b, 0xffffffff)
			continue
		}
		b = append(binary.BigEndian.AppendUint32(b, uint32(len(p))), p...)
	}
	b = binary.BigEndian.AppendUint16(b, uint16(len(results)))
	for _, f := range results {
		b = binary.BigEndian.AppendUint16(b, f)
	}
	return string(b)
}

func (s *script) bind(portal, statement string, params ...string) *script {
	return s.front('B', bindBody(portal, statement, nil, params, nil))
}

// run1 adds a whole simple query that succeeds.
func (s *script) run1(sql, tag string, status byte) *script {
	return s.query(sql).complete(tag).ready(status)
}

// state adds what the engine states about the answer that the next record ends.
func (s *script) state(epsilon float64) *script {
	s.states = true
	s.server = append(s.server, tracker.AppendStated(nil, capture.Stated{Epsilon: epsilon}))
	return s
}

// result holds a tracker's output for a script.
type result struct {
	Queries []capture.Query
	Counts  tracker.Counts
	Off     tracker.Off
}

func (s *script) config(r *result) tracker.Config {
	return tracker.Config{
		SessionID: 7,
		Startup: tracker.Startup{
			User: "ann", Database: "bank", ApplicationName: "app", Settings: map[string]string{"dp.start": "1"},
		},
		MaxStatementBytes: 200,
		MaxHeldBytes:      1 << 20,
		StatedClaims:      s.states,
		Counts:            &r.Counts,
		Emit:              func(q capture.Query) { r.Queries = append(r.Queries, q) },
	}
}

// run feeds the script in many interleavings, checks that all give the same result, and returns it.
func (s *script) run(t *testing.T) result {
	t.Helper()
	all := func(records [][]byte) []byte {
		var b []byte
		for _, r := range records {
			b = append(b, r...)
		}
		return b
	}
	var first result
	whole := tracker.New(s.config(&first))
	whole.Feed(all(s.client), all(s.server))
	first.Off = whole.Off()
	for seed := range uint64(40) {
		rnd := rand.New(rand.NewPCG(1, seed))
		var r result
		tr := tracker.New(s.config(&r))
		client, server := s.client, s.server
		buf := make([]byte, 0, 4096)
		for len(client)+len(server) > 0 {
			turn := rnd.Float64()
			switch {
			case seed == 0: // all of the server's first
				turn = 1
			case seed == 1: // all of the client's first
				turn = 0
			}
			if len(server) == 0 || len(client) > 0 && turn < 0.5 {
				buf = append(buf[:0], client[0]...)
				client = client[1:]
				tr.Feed(buf, nil)
			} else {
				buf = append(buf[:0], server[0]...)
				server = server[1:]
				tr.Feed(nil, buf)
			}
			clear(buf[:cap(buf)]) // the caller reuses the memory
		}
		r.Off = tr.Off()
		if diff := cmp.Diff(first, r); diff != "" {
			t.Fatalf("interleaving %d gives something else: %s", seed, diff)
		}
	}
	return first
}

// sqls returns the queries with their command tags, or how else they ended.
func (r result) sqls() []string {
	var out []string
	for _, q := range r.Queries {
		end := q.Tag
		if q.Outcome != capture.Complete {
			end = strings.TrimSpace(q.Outcome.String() + " " + q.SQLState)
		}
		out = append(out, q.SQL+" | "+end)
	}
	return out
}

// wantSQL checks the queries of a script, in the form of sqls, and that capture did not stop.
func (s *script) wantSQL(t *testing.T, want ...string) result {
	t.Helper()
	r := s.run(t)
	if diff := cmp.Diff(want, r.sqls()); diff != "" {
		t.Errorf("captured queries: %s", diff)
	}
	if r.Off != tracker.On {
		t.Errorf("tracker stopped: %d", r.Off)
	}
	return r
}

func at(second int64) time.Time { return time.Unix(second, 0) }

func long(n int) string { return strings.Repeat("x", n) }
