package relay

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The metrics of several engines are one text: each family once, with the label engine on every sample. What cannot be
// parsed is left out with an error.
func TestLabelEngines(t *testing.T) {
	t.Parallel()
	const counts = `# HELP x_total Things.
# TYPE x_total counter
x_total{kind="a"} 1
x_total{kind="b"} 2
`
	const more = counts + `# HELP h_seconds Times.
# TYPE h_seconds histogram
h_seconds_bucket{le="1"} 3
h_seconds_bucket{le="+Inf"} 4
h_seconds_sum 5
h_seconds_count 4
`
	const want = `# HELP h_seconds Times.
# TYPE h_seconds histogram
h_seconds_bucket{engine="two",le="1"} 3
h_seconds_bucket{engine="two",le="+Inf"} 4
h_seconds_sum{engine="two"} 5
h_seconds_count{engine="two"} 4
# HELP x_total Things.
# TYPE x_total counter
x_total{kind="a",engine="one"} 1
x_total{kind="b",engine="one"} 2
x_total{kind="a",engine="two"} 1
x_total{kind="b",engine="two"} 2
`
	got, err := labelEngines(map[string][]byte{"two": []byte(more), "one": []byte(counts), "not started": nil})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	got, err = labelEngines(map[string][]byte{"two": []byte(more), "broken": []byte("x_total{ 1\n")})
	if err == nil || len(got) == 0 {
		t.Errorf("%q, %v; want the metrics of the other engine and an error", got, err)
	}
}
