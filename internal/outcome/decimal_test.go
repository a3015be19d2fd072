package outcome

import (
	"math"
	"math/big"
	"math/rand/v2"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// TestDecimal checks that decimals have the value of strconv.ParseFloat, including halves of the last place.
func TestDecimal(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 1))
	texts := []string{"0", "-0", "0.0", "9999999999999999999", "0.000000000000000001", "1.000000000000000001", "9007199254740993", "-4503599627370496.5", "4503599627370497.5"}
	for range 100_000 {
		texts = append(texts, strconv.FormatFloat(r.NormFloat64()*math.Pow(10, float64(r.IntN(8)-2)), 'f', -1, 64))
		digits := strconv.FormatUint(1e18+r.Uint64N(9e18), 10)[:1+r.IntN(19)]
		at := 1 + r.IntN(len(digits))
		texts = append(texts, digits[:at]+map[bool]string{true: ".", false: ""}[at < len(digits)]+digits[at:])
		x := 1 + r.Float64() // the middle of two neighbouring float32 values has few enough digits
		half := new(big.Float).Quo(new(big.Float).SetPrec(200).Add(big.NewFloat(float64(float32(x))), big.NewFloat(float64(math.Nextafter32(float32(x), 2)))), big.NewFloat(2))
		texts = append(texts, half.Text('f', 17), half.Text('f', 18))
	}
	read := 0
	for _, text := range texts {
		got, n, _ := decimal(text)
		if n == 0 {
			continue
		}
		read++
		if want, err := strconv.ParseFloat(text[:n], 64); err != nil || math.Float64bits(got) != math.Float64bits(want) {
			t.Fatalf("%s is read as %v, want %v (%v)", text[:n], got, want, err)
		}
	}
	if read < len(texts)*9/10 {
		t.Errorf("%d of %d were read", read, len(texts))
	}
	for text, length := range map[string]int{"": 0, "-": 0, "01": 0, "1.": 0, ".5": 0, "1e3": 0, "1.5E3": 0, "+1": 0, "12345678901234567890": 0, "1.5x": 3, "7]": 1, "-0.25,": 5} {
		if _, n, _ := decimal(text); n != length {
			t.Errorf("of %q, %d bytes are a number, want %d", text, n, length)
		}
	}
}

// TestParserKeepsResults checks that a parser returns the same for a line as a new one, and does not change earlier
// results.
func TestParserKeepsResults(t *testing.T) {
	t.Parallel()
	lines := []string{
		`{"columns":["g","n"],"rows":[["a",1],["b",2]]}`, `{"columns":["g","n"],"rows":[["a",3.5],["b",4]]}`, `{"columns":["g","n"],"rows":[["b",1]]}`, `{"error":"22012"}`,
		`{"columns":["g","n"],"rows":[["a",1],["b",2],["c",3],["",null]]}`, `{"rows":[[1,2,3]]}`, `{"rows":[]}`, `{"rows":[[],[]]}`, ``, `x`, `{"columns":["g","n"],"rows":[["a",true],["NaN","b"]]}`,
		`{"columns":["g","n"],"rows":[["a",[1]],["b",2]]}`, `{"columns":["g","m"],"rows":[["a",1],["b",2]]}`, `{"columns":["g"],"rows":[["a"]]}`, `{"columns":["g","n"],"rows":[["a",1],["b",2]]}`,
	}
	for _, reuse := range []bool{false, true} {
		p := Parser{Reuse: reuse}
		var got, want []Outcome
		for _, line := range append(lines, lines...) {
			o, err := p.ParseLine([]byte(line))
			alone, wantErr := new(Parser).ParseLine([]byte(line))
			if diff := cmp.Diff(alone, o, cmpopts.EquateNaNs()); diff != "" || err != nil || wantErr != nil {
				t.Errorf("%s (-alone +after others) %v %v\n%s", line, wantErr, err, diff)
			}
			got, want = append(got, o), append(want, alone)
		}
		if diff := cmp.Diff(want, got, cmpopts.EquateNaNs()); diff != "" && !reuse {
			t.Errorf("results change when others are read\n%s", diff)
		}
	}
}
