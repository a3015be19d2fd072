package analysis_test

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash/crc64"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/dpwatch/dpwatch/analysis"
)

// stateShapes are shapes with errors, shared and constant noise besides.
var stateShapes = append(shapes[:len(shapes):len(shapes)], []struct {
	name string
	d    draw
}{
	{"shared", func(r *rand.Rand) (d0, d1 analysis.Outcome) { z := lap(r, 1); return value(z), value(1 - z) }},
	{"errors", func(r *rand.Rand) (d0, d1 analysis.Outcome) {
		if r.IntN(3) == 0 {
			return failed("22012"), value(lap(r, 1))
		}
		return value(lap(r, 1)), value(math.Inf(1))
	}},
	{"difference", leaksBetween[0].d},
	{"shared in part", leaksBetween[5].d},
	{"fraction", leaksBetween[7].d},
	{"ratio", runningSums(4, .5)},
	{"floating point", leaksBetween[9].d},
	{"products", leaksTogether[0].d},
	{"extreme", leaksTogether[3].d},
	{"revealing", revealing(.04)},
	{"period", func(r *rand.Rand) (d0, d1 analysis.Outcome) { return modulo(r, 0), modulo(r, .5) }},
	{"third moment", func(r *rand.Rand) (d0, d1 analysis.Outcome) { return skewed(r, 1), skewed(r, -1) }},
	{"rare keys", func(r *rand.Rand) (d0, d1 analysis.Outcome) { return rareKeys(r, 0), rareKeys(r, 50) }},
	{"second row", seldom(.02, func(r *rand.Rand) analysis.Outcome { return groups(lap(r, 1), lap(r, 1)) }, func(r *rand.Rand) analysis.Outcome { return groups(lap(r, 1)) })},
	{"category and number", func(r *rand.Rand) (d0, d1 analysis.Outcome) { return sorted(r, 0), sorted(r, 1) }},
}...)

func newAudit(t testing.TB) *analysis.Audit {
	t.Helper()
	a, err := analysis.New(analysis.Claim{Epsilon: .5, Delta: 1e-6}, analysis.Options{MaxSlots: 64, MaxTrials: 400})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func saved(t testing.TB, a *analysis.Audit) []byte {
	t.Helper()
	b, err := a.MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestSaveAndRestore interrupts an audit after many a pair: what was restored goes on bit for bit like the original.
func TestSaveAndRestore(t *testing.T) {
	t.Parallel()
	for _, s := range stateShapes {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			pairs := sample(420, s.d)
			one, two := newAudit(t), newAudit(t)
			for i, p := range pairs {
				if i < 20 || i%37 == 0 {
					var back analysis.Audit
					if err := back.UnmarshalBinary(saved(t, two)); err != nil {
						t.Fatalf("after %d pairs: %v", i, err)
					}
					two = &back
				}
				one.Add(p[0], p[1])
				two.Add(p[0], p[1])
			}
			x, _ := json.Marshal(one.Report())
			y, _ := json.Marshal(two.Report())
			if !bytes.Equal(x, y) || !bytes.Equal(saved(t, one), saved(t, two)) {
				t.Errorf("uninterrupted: %s\nrestored: %s", x, y)
			}
		})
	}
}

// TestOtherForm: a state of the form before is refused by both numbers, with what to do, and changes nothing.
func TestOtherForm(t *testing.T) {
	t.Parallel()
	a := newAudit(t)
	for _, p := range sample(50, shapes[2].d) {
		a.Add(p[0], p[1])
	}
	good := saved(t, a)
	old := bytes.Clone(good[:len(good)-8])
	old[analysis.StateHead-1]--
	old = binary.LittleEndian.AppendUint64(old, crc64.Checksum(old, crc64.MakeTable(crc64.ECMA)))
	want := fmt.Sprintf("the audit was saved in form %d, this version reads form %d: restart the audit", old[analysis.StateHead-1], good[analysis.StateHead-1])
	if err := a.UnmarshalBinary(old); err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
	if !bytes.Equal(saved(t, a), good) {
		t.Error("the audit was changed")
	}
}

func TestDamagedStates(t *testing.T) {
	t.Parallel()
	a := newAudit(t)
	for _, p := range sample(50, shapes[2].d) {
		a.Add(p[0], p[1])
	}
	good := saved(t, a)
	for n := 0; n < len(good); n += 1 + len(good)/200 {
		if err := newAudit(t).UnmarshalBinary(good[:n]); err == nil {
			t.Fatalf("cut off after %d bytes: taken", n)
		}
		bad := bytes.Clone(good)
		bad[n] ^= 4
		b := newAudit(t)
		before := saved(t, b)
		if err := b.UnmarshalBinary(bad); err == nil {
			t.Fatalf("byte %d changed: taken", n)
		}
		if !bytes.Equal(before, saved(t, b)) {
			t.Fatal("the audit was changed")
		}
	}
}

// FuzzRestore changes a state behind its checksum: it is refused, or the audit goes on without a panic.
func FuzzRestore(f *testing.F) {
	for _, s := range stateShapes {
		a := newAudit(f)
		for _, p := range sample(45, s.d) {
			a.Add(p[0], p[1])
		}
		b := saved(f, a)
		f.Add(b[analysis.StateHead:len(b)-8], uint16(0), byte(0))
		for i := range 10 {
			f.Add(b[analysis.StateHead:len(b)-8], uint16(i*len(b)/10), byte(1+i%7))
		}
	}
	f.Fuzz(func(t *testing.T, body []byte, at uint16, flip byte) {
		if int(at) < len(body) {
			body = bytes.Clone(body)
			body[at] ^= flip
		}
		a, err := analysis.RestoreBody(body)
		if err != nil {
			return
		}
		for _, p := range sample(3, shapes[2].d) {
			a.Add(p[0], p[1])
		}
		if _, err := json.Marshal(a.Report()); err != nil {
			t.Fatal(err)
		}
	})
}

// TestWealthChangesNothing: an audit whose wealth is read after each pair stays the one whose wealth is not read.
func TestWealthChangesNothing(t *testing.T) {
	t.Parallel()
	for _, s := range stateShapes {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			read, unread := newAudit(t), newAudit(t)
			for i, p := range sample(120, s.d) {
				read.Add(p[0], p[1])
				unread.Add(p[0], p[1])
				if w := read.Wealth(); w != read.Wealth() {
					t.Fatalf("after %d pairs: the wealth is %v, and then %v", i+1, w, read.Wealth())
				}
				if i%10 == 9 && !bytes.Equal(saved(t, read), saved(t, unread)) {
					t.Fatalf("after %d pairs: reading the wealth changed the audit", i+1)
				}
			}
		})
	}
}
