package analysis_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/dpwatch/dpwatch/analysis"
)

// printed returns a value in every form in which a program may print it by accident.
func printed(t *testing.T, v any) string {
	t.Helper()
	var b bytes.Buffer
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
		fmt.Fprintf(&b, verb+"\n", v)
		fmt.Fprintf(&b, verb+"\n", struct{ hidden any }{v})
	}
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	b.Write(raw)
	core := zapcore.NewCore(zapcore.NewJSONEncoder(zap.NewProductionEncoderConfig()), zapcore.AddSync(&b), zap.DebugLevel)
	zap.New(core).Info("", zap.Any("any", v), zap.Reflect("reflect", v))
	return b.String()
}

// stores is a result with a row for every key.
func stores(keys []float64, n func() float64) analysis.Outcome {
	o := analysis.Outcome{Columns: []analysis.Column{{Name: "store", Discrete: true}, {Name: "n"}}}
	for _, k := range keys {
		o.Rows = append(o.Rows, []analysis.Value{{Kind: analysis.Number, Num: k}, {Kind: analysis.Number, Num: n()}})
	}
	return o
}

// TestReportWithholdsValues: no printed form of a report holds a group key, a text or a threshold; the revealed report
// does. D0 has a group, or a text, or values around 73194628.5, that D1 has not.
func TestReportWithholdsValues(t *testing.T) {
	t.Parallel()
	const key, secret = 9182736, "MRN777"
	for _, c := range []struct {
		name          string
		trial         func(r *rand.Rand, world int) analysis.Outcome
		values        []string // revealed
		public        string   // description
		kind          analysis.EventKind
		tail          analysis.Tail
		column, score string
	}{
		{
			"text", func(r *rand.Rand, world int) analysis.Outcome {
				if world == 0 && r.Float64() < .7 {
					return word(secret)
				}
				return word("common")
			},
			[]string{`"MRN777"`},
			"column answer: a text (withheld) only on D0, never on D1", analysis.TextEvent, "", "answer", "value",
		},
		{
			"group", func(r *rand.Rand, world int) analysis.Outcome {
				keys := []float64{1, 2}
				if world == 0 {
					keys = append(keys, key)
				}
				return stores(keys, func() float64 { return lap(r, 1) })
			},
			[]string{"store=9182736"},
			"", "", "", "", "",
		},
		{
			"threshold", func(r *rand.Rand, world int) analysis.Outcome {
				return value(73194628.5 + lap(r, 1) - float64(world)*4)
			},
			[]string{"7.31946e+07"},
			"column x: small values more likely on D1", analysis.NumberEvent, analysis.LowerTail, "x", "value",
		},
		{
			"error", func(_ *rand.Rand, world int) analysis.Outcome {
				if world == 0 {
					return failed("the key (MRN777) exists")
				}
				return value(1)
			},
			nil, "", "", "", "", "",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			a, err := analysis.New(analysis.Claim{Epsilon: .5}, analysis.Options{MaxTrials: 400, Salt: "salt"})
			if err != nil {
				t.Fatal(err)
			}
			r := rand.New(rand.NewPCG(7, 7))
			for range 400 {
				a.Add(c.trial(r, 0), c.trial(r, 1))
			}
			got := a.Report()
			if got.Verdict != analysis.Violation {
				t.Fatalf("verdict %s", got.Verdict)
			}
			text := printed(t, got) + printed(t, a.Figures())
			for _, row := range c.trial(r, 0).Rows {
				text += fmt.Sprintf("%v %+v %#v %s", row, row, row, row)
			}
			for _, v := range append(slices.Clone(c.values), "MRN777", "9182736", "731946", "7.3194", "7.319e") {
				if strings.Contains(text, v) {
					t.Errorf("%s is printed", v)
				}
			}
			open := printed(t, got.Reveal())
			for _, v := range c.values {
				if !strings.Contains(open, strings.Trim(v, `"`)) {
					t.Errorf("%s is not revealed: %s", v, open)
				}
			}
			e := got.Event
			if c.public != "" && (e.Description.String() != c.public || e.Kind != c.kind || e.Tail != c.tail || e.Column != c.column || e.Score != c.score) {
				t.Errorf("description %q, %+v", e.Description.String(), *e)
			}
			if d0, d1 := float64(e.D0), float64(e.D1); !(d0 > 0 && d0 < 1 && d1 > 0 && d1 < 1) || (d0 > d1) != (e.Direction == "D0") {
				t.Errorf("probabilities %v and %v, direction %s", d0, d1, e.Direction)
			}
		})
	}
}

// TestGroupIDs: one key has one id under one salt, in whatever order keys come; under another salt another; and none
// without.
func TestGroupIDs(t *testing.T) {
	t.Parallel()
	names := func(salt string, keys ...float64) map[string]string {
		a, err := analysis.New(analysis.Claim{Epsilon: 1}, analysis.Options{Salt: salt})
		if err != nil {
			t.Fatal(err)
		}
		o := stores(keys, func() float64 { return 1 })
		for range 4 {
			a.Add(o, o)
		}
		all := map[string]string{}
		for _, p := range a.Report().Partitions {
			all[p.Key.Reveal()] = p.Key.String()
		}
		return all
	}
	id := func(name string) string {
		_, rest, _ := strings.Cut(name, "(id ")
		return rest
	}
	one, two, other, none := names("a", 5, 6, 7), names("a", 7, 5, 6), names("b", 5, 6, 7), names("", 5, 6, 7)
	if one["store=5"] != "group 1 of 3 (id "+id(one["store=5"]) || len(id(one["store=5"])) != len("01234567)") {
		t.Errorf("names %q", one)
	}
	for key := range one {
		if id(one[key]) != id(two[key]) || id(one[key]) == id(other[key]) || none[key] == "" || strings.Contains(none[key], "id") {
			t.Errorf("%s: %q, %q, %q, %q", key, one[key], two[key], other[key], none[key])
		}
	}
}
