package outcome

import (
	"bytes"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

var plainObjects = []string{
	`{"columns":["g","n","m"],"rows":[["a",1,null],["b",2.5,true]]}`, `{"rows":[["-Infinity"]]}`, `{"rows":[]}`, `{"columns":[],"rows":[]}`,
	`{"columns":["a"],"rows":[]}`, ` { "rows" : [ [ 1 , "ü" ] , [ -0.5e+3 , "x" ] ] , "columns" : [ "n" , "t" ] } `, `{"columns":["a"]}`, `{"rows":[[],[]]}`,
}

// TestFastObject checks that plain forms are parsed by fastObject.
func TestFastObject(t *testing.T) {
	t.Parallel()
	for _, line := range plainObjects {
		if _, ok := new(Parser).fastObject([]byte(line)); !ok {
			t.Errorf("%s is read by encoding/json", line)
		}
	}
}

// TestParserAgain: a parser that has parsed a line, valid or not, parses the next like a new one.
func TestParserAgain(t *testing.T) {
	t.Parallel()
	lines := append([]string{
		`{"rows":[["a\n"]]}`, `{"rows":[["a\"]]}`, `{"rows":[["a"],["\u0041"]]}`, "{\"rows\":[[\"\xff\"]]}", `{"rows":[["a"],["b",1]]}`, `{"rows":[["NaN","a"]]}`, `{"rows":[["a","a"]]}`,
		`{"rows":[["ab"]]}`, `{"rows":[["a"]]} x`, `{"rows":[["a`,
	}, plainObjects...)
	for _, first := range lines {
		for _, second := range lines {
			p := Parser{Reuse: true}
			_, _ = p.ParseLine([]byte(first))
			got, err := p.ParseLine([]byte(second))
			want, wantErr := new(Parser).ParseLine([]byte(second))
			if diff := cmp.Diff(want, got, cmpopts.EquateNaNs(), cmpopts.EquateEmpty()); diff != "" || (err == nil) != (wantErr == nil) {
				t.Errorf("%s after %s: %v, want %v\n%s", second, first, err, wantErr, diff)
			}
		}
	}
}

// FuzzFastObject: fastObject and encoding/json give the same results.
func FuzzFastObject(f *testing.F) {
	for _, line := range append(plainObjects, `{"rows":[[01]]}`, `{"rows":[[1,]]}`, `{"rows":[[1],[1,2]]}`, `{"rows":[["\u0041"]]}`, `{"rows":[[1]],"rows":[[2]]}`, `{"Rows":[[1]]}`,
		`{"error":"22012"}`, `{"columns":null,"rows":null}`, `{"rows":[[1]]} x`, `{"rows":[[.5]]}`, `{"rows":[[1.]]}`, `{"rows":[[+1]]}`, `{"rows":[[nan]]}`, "{\"rows\":[[\"\xff\"]]}", `{}`, `{"columns":["a"],"rows":[[1,2]]}`, `{"rows":[[1e999]]}`,
		`{"columns":["a","a"],"rows":[["NaN",1]],}`) {
		f.Add([]byte(line))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		line = bytes.TrimSpace(line)
		fast, ok := new(Parser).fastObject(line)
		if !ok {
			return
		}
		slow, err := parseObject(line)
		if err != nil {
			t.Fatalf("%q is read, and encoding/json refuses it: %v", line, err)
		}
		if diff := cmp.Diff(slow, fast, cmpopts.EquateNaNs()); diff != "" {
			t.Errorf("%q (-encoding/json +fast)\n%s", line, diff)
		}
	})
}
