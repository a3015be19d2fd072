package capture_test

import (
	"bytes"
	"math"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dpwatch/dpwatch/internal/capture"
)

func queries() map[string]capture.Query {
	return map[string]capture.Query{
		"zero": {},
		"simple": {
			SessionID: math.MaxUint64, User: "ann", Database: "bank", ApplicationName: "psql",
			SQL: "SELECT anon_count(*, 0.5) FROM users", Tag: "SELECT 1",
			Completed: time.Date(2026, 2, 3, 4, 5, 6, 789, time.UTC),
		},
		"extended": {
			SessionID: 1, SQL: "SELECT $1, $2, $3, $4", Protocol: capture.Extended, Named: true, Temporary: []string{"a", "b c"},
			Params: []capture.Param{
				{OID: 25, Value: []byte("text")},
				{OID: math.MaxUint32, Format: 1, Value: []byte{0, 255, 0}},
				{Null: true},
				{Format: -1, Value: []byte{}},
			},
			ResultFormats: []int16{0, 1, math.MinInt16, math.MaxInt16},
			Settings:      map[string]string{"dp.epsilon": "0.5", "search_path": `"$user", public`, "empty": ""},
		},
		"doubt": {SQL: "SELECT 1", Doubt: capture.Doubt{Names: []string{"a.b", "role"}, Temporary: true, Calls: []capture.Calls{
			{Functions: []string{"f", "g"}, Except: []string{"a.c"}}, {Functions: []string{capture.UnknownCode}, Only: []string{"role"}}, {},
		}}, Completed: time.Unix(7, 0).UTC()},
		"began":        {SQL: "SELECT 1", Began: time.Unix(8, 9).UTC(), Completed: time.Unix(9, 0).UTC()},
		"sequence":     {SQL: "SELECT 1", Then: []capture.Step{{SQL: "SELECT $1", Protocol: capture.Extended, Named: true, Params: []capture.Param{{OID: 23, Value: []byte("7")}}}, {}}, Completed: time.Unix(7, 0).UTC()},
		"failed":       {SQL: "SELECT 1/x FROM t", Outcome: capture.Failed, SQLState: "22012"},
		"lost":         {SQL: "SELECT 1", Outcome: capture.Lost},
		"stated":       {SQL: "SELECT 1", Stated: capture.Stated{Epsilon: 1.5, Delta: 1e-6}},
		"unclear":      {SQL: "SELECT 1", Stated: capture.Stated{Unclear: true}, Completed: time.Unix(7, 0).UTC()},
		"stated later": {SQL: "SELECT 1", Then: []capture.Step{{SQL: "SELECT 2"}, {SQL: "SELECT 3", Stated: capture.Stated{Rho: 0.5, Mu: math.MaxFloat64}}}},
		"temporary": {SQL: "SELECT * FROM v, t", Temporary: []string{"t", "v"}, Temps: []capture.Temp{
			{Name: "t"}, {Name: "v", View: "CREATE TEMP VIEW v AS SELECT 1", Settings: map[string]string{"search_path": ""}, Doubt: capture.Doubt{Names: []string{"role"}}},
		}},
		"not utf8":    {SQL: "SELECT '\xff\x00'", Completed: time.Unix(-1, 5).UTC()},
		"definitions": {SQL: "SELECT 1", Definition: capture.Uncommitted},
		"unread":      {SQL: "SELECT 1", Definition: capture.Unread},
	}
}

func TestBinaryRoundTrip(t *testing.T) {
	t.Parallel()
	for name, want := range queries() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := capture.AppendBinary([]byte("before"), want)
			got, err := capture.DecodeBinary(b[len("before"):])
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
			if again := capture.AppendBinary([]byte("before"), got); !bytes.Equal(b, again) {
				t.Error("encoding what was decoded gives other bytes")
			}
		})
	}
}

func TestDecodeBinaryRefuses(t *testing.T) {
	t.Parallel()
	good := capture.AppendBinary(nil, queries()["extended"])
	stated := capture.AppendBinary(nil, queries()["stated"])
	tests := []struct{ name, in, want string }{
		{"empty", "", "too short"},
		{"other version", "\x06" + string(good[1:]), "version 6"},
		{"stated is short", string(stated[:len(stated)-1]), "no claim"},
		{"stated is not a number", string(stated[:len(stated)-8]) + "\xff\xf8\x00\x00\x00\x00\x00\x00", "no claim"},
		{"trailing byte", string(good) + "x", "1 bytes follow the query"},
		{"unknown outcome", "\x03\x00\x05", "outcome 5"},
		{"huge string", "\x02\x00\x01\xff\xff\xff\xff\xff\xff\xff\xff\x7f", "too short"},
		{"length overflows", "\x02\x00\x01" + strings.Repeat("\xff", 11), "too short"},
		{"huge parameter count", "\x02\x00\x01\x00\x00\x00\x00\x00\xff\xff\xff\x0f", "too short"},
		{"format out of range", "\x02\x00\x01\x00\x00\x00\x00\x00\x00\x01\x80\x80\x10\x00", "format code"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			_, err := capture.DecodeBinary([]byte(test.in))
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want an error with %q", err, test.want)
			}
		})
	}
	t.Run("every cut", func(t *testing.T) {
		t.Parallel()
		for n := range good {
			if _, err := capture.DecodeBinary(good[:n]); err == nil {
				t.Errorf("the first %d of %d bytes were decoded without an error", n, len(good))
			}
		}
	})
}

// TestDecodeEarlierVersion: queries of the version without an outcome are in spools and ledgers.
func TestDecodeEarlierVersion(t *testing.T) {
	t.Parallel()
	got, err := capture.DecodeBinary([]byte("\x02\x04\x07\x03ann\x04bank\x00\x08SELECT 1\x08SELECT 1\x00\x00\x00\x00\x02\x05"))
	want := capture.Query{SessionID: 7, User: "ann", Database: "bank", SQL: "SELECT 1", Tag: "SELECT 1", Completed: time.Unix(1, 5).UTC()}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Error(err, diff)
	}
}

// TestOlderReaders: a query about which the engine states nothing has the version that a former dpwatch reads.
func TestOlderReaders(t *testing.T) {
	t.Parallel()
	for name, q := range queries() {
		want := byte(3)
		if strings.HasPrefix(name, "stated") || name == "unclear" {
			want = 4
		}
		if name == "temporary" {
			want = 5
		}
		if got := capture.AppendBinary(nil, q)[0]; got != want {
			t.Errorf("%s: version %d, want %d", name, got, want)
		}
	}
}

// FuzzDecodeBinary: no input panics or allocates much memory, and every decoded query round-trips.
func FuzzDecodeBinary(f *testing.F) {
	for _, q := range queries() {
		f.Add(capture.AppendBinary(nil, q))
	}
	f.Add([]byte("\x02\x00\x01\x00\x00\x00\x00\x00\xff\xff\xff\x0f"))
	f.Fuzz(func(t *testing.T, b []byte) {
		q, err := capture.DecodeBinary(b)
		if err != nil {
			return
		}
		if size, limit := q.Size(), 1024+64*len(b); size > limit {
			t.Errorf("%d bytes of input gave a query of %d bytes", len(b), size)
		}
		again, err := capture.DecodeBinary(capture.AppendBinary(nil, q))
		if err != nil {
			t.Fatalf("decode what was encoded: %v", err)
		}
		if diff := cmp.Diff(q, again); diff != "" {
			t.Error(diff)
		}
	})
}

func BenchmarkAppendBinary(b *testing.B) {
	q := queries()["extended"]
	var dst []byte
	b.ReportAllocs()
	for b.Loop() {
		dst = capture.AppendBinary(dst[:0], q)
	}
	runtime.KeepAlive(dst)
}
