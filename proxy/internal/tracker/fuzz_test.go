package tracker_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dpwatch/dpwatch/internal/capture"
	"github.com/dpwatch/dpwatch/proxy/internal/tracker"
)

// fuzzBodies are message bodies that the fuzzer's input selects, so that it uses valid ones.
var fuzzBodies = []string{
	"", "\x00", "I", "T", "E", "SELECT 1\x00", "BEGIN\x00", "COMMIT\x00", "ROLLBACK\x00", "SET a = 1\x00",
	"SAVEPOINT s\x00", "ROLLBACK TO s\x00", "SELECT 1; SELECT 2\x00", "COPY t FROM STDIN\x00",
	"client_encoding\x00UTF8\x00", "standard_conforming_strings\x00on\x00", "client_encoding\x00SJIS\x00",
	"s\x00SELECT $1\x00\x00\x01\x00\x00\x00\x19", "\x00s\x00\x00\x00\x00\x00\x00\x00", "p\x00s\x00\x00\x01\x00\x01\x00\x01\x00\x00\x00\x01x\x00\x00",
	"\x00\x00\x00\x00\x00", "p\x00\x00\x00\x00\x05", "Ss\x00", "Pp\x00", "DEALLOCATE s\x00", "DISCARD ALL\x00",
	"PREPARE s (int) AS SELECT $1\x00", "EXECUTE s(1)\x00", "s\x00EXECUTE s\x00\x00\x00", "CREATE TEMP TABLE t ()\x00", "EXPLAIN EXECUTE s\x00",
	"\x00\x00\xff\xff", "\x00\x00\x00\x00\xff\xff\xff\xff\xff\xff",
}

const (
	fuzzFront = "QPBDECSFcfX?"
	fuzzBack  = "CIEZS123TnsGVW?"
)

// FuzzTracker: no sequence of messages panics, the tracker stays within its memory limit, and the interleaving of the
// two directions makes no difference.
func FuzzTracker(f *testing.F) {
	f.Add([]byte("\x00\x01\x80\x05\x80\x03\x83\x02"))
	f.Add([]byte{0x84, 14, 0x84, 15, 0x83, 2, 0x00, 5, 0x80, 5, 0x83, 2})
	f.Add([]byte{0x84, 14, 0x84, 15, 0x83, 2, 1, 17, 2, 18, 4, 20, 6, 0, 0x85, 0, 0x86, 0, 0x80, 5, 0x83, 2})
	f.Add([]byte{0x84, 14, 0x84, 15, 0x83, 2, 0, 13, 0x8b, 0, 0x82, 0, 0x83, 2, 6, 0, 8, 0})
	f.Add([]byte{0x84, 14, 0x84, 15, 0x83, 2, 0, 13, 0x8b, 0, 0xff, 0, 0x84, 16, 0, 5, 0x80, 5, 0x83, 2})
	f.Fuzz(func(t *testing.T, choices []byte) {
		s := &script{}
		for i := 0; i+1 < len(choices); i += 2 {
			typ, body := choices[i], choices[i+1]
			text := fuzzBodies[int(body)%len(fuzzBodies)]
			switch {
			case typ == 0xff:
				s.gap()
			case typ&0x80 != 0:
				s.back(fuzzBack[int(typ&0x3f)%len(fuzzBack)], text)
			case typ&0x40 != 0:
				s.frontCut(fuzzFront[int(typ&0x3f)%len(fuzzFront)], text)
			default:
				s.front(fuzzFront[int(typ&0x3f)%len(fuzzFront)], text)
			}
		}
		r := s.run(t)
		for _, q := range r.Queries {
			if q.SQL == "" {
				t.Error("a query without text")
			}
			decoded, err := capture.DecodeBinary(capture.AppendBinary(nil, q))
			if err != nil {
				t.Fatal(err)
			}
			q.Completed, decoded.Completed = q.Completed.UTC(), decoded.Completed.UTC()
			if diff := cmp.Diff(q, decoded); diff != "" {
				t.Error(diff)
			}
		}
	})
}

// FuzzRecords feeds raw bytes as records: malformed ones must not panic either.
func FuzzRecords(f *testing.F) {
	f.Add(record('Q', "SELECT 1\x00"), record('Z', "I"))
	f.Add(record('B', bindBody("", "", []uint16{0, 1}, []string{"a", null}, nil)), record('2', ""))
	f.Fuzz(func(_ *testing.T, client, server []byte) {
		var r result
		tr := tracker.New((&script{}).config(&r))
		tr.Feed(client, server)
		tr.Feed(server, client)
	})
}

func BenchmarkTracker(b *testing.B) {
	bench := func(s *script) func(*testing.B) {
		return func(b *testing.B) {
			var client, server []byte
			for _, r := range s.client {
				client = append(client, r...)
			}
			for _, r := range s.server {
				server = append(server, r...)
			}
			var r result
			cfg := s.config(&r)
			cfg.Emit = func(capture.Query) {}
			tr := tracker.New(cfg)
			start := newScript().parse("s", "SELECT abalance FROM pgbench_accounts WHERE aid = $1", 23).sync().parsed().ready('I')
			for _, r := range start.server {
				tr.Feed(nil, r)
			}
			for _, r := range start.client {
				tr.Feed(r, nil)
			}
			b.ReportAllocs()
			for b.Loop() {
				tr.Feed(client, server)
			}
			if tr.Off() != tracker.On {
				b.Fatal("the tracker stopped")
			}
		}
	}
	b.Run("simple", bench((&script{}).run1("SELECT abalance FROM pgbench_accounts WHERE aid = 4711", "SELECT 1", 'I')))
	b.Run("extended", bench((&script{}).parse("", "SELECT abalance FROM pgbench_accounts WHERE aid = $1").
		bind("", "", "4711").execute("").sync().parsed().bound("SELECT 1").ready('I')))
	b.Run("prepared", bench((&script{}).bind("", "s", "4711").execute("").sync().bound("SELECT 1").ready('I')))
}
