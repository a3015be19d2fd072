package analysis_test

import (
	"encoding/json"
	"math"
	"os"
	"strconv"
	"testing"

	"github.com/dpwatch/dpwatch/analysis"
)

func TestBucketEstimateAgreesWithDPTester(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile("testdata/dp_tester_vectors.json")
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Cases []struct {
			Name     string
			D0, D1   []int
			Delta    float64
			MinCount int `json:"min_count"`
			Want     string
		}
	}
	if err := json.Unmarshal(raw, &file); err != nil {
		t.Fatal(err)
	}
	if len(file.Cases) != 24 {
		t.Fatalf("%d cases, want 24", len(file.Cases))
	}
	for _, c := range file.Cases {
		t.Run(c.Name, func(t *testing.T) {
			t.Parallel()
			want, err := strconv.ParseFloat(c.Want, 64)
			if err != nil {
				t.Fatal(err)
			}
			got := analysis.BucketEstimate(c.D0, c.D1, c.Delta, c.MinCount)
			if math.IsNaN(got) != math.IsNaN(want) || (got != want && math.Abs(got-want) > 1e-9) {
				t.Errorf("got %v, want %v", got, want)
			}
		})
	}
}

func TestBucketEstimateOfNothing(t *testing.T) {
	t.Parallel()
	for name, c := range map[string][2][]int{
		"empty": {nil, nil}, "all_zero": {{0, 0}, {0, 0}}, "one_side_empty": {{3}, nil}, "unequal": {{3, 1}, {3, 2}},
	} {
		if got := analysis.BucketEstimate(c[0], c[1], 0, 5); !math.IsNaN(got) {
			t.Errorf("%s: got %v, want NaN", name, got)
		}
	}
}

func FuzzBucketEstimate(f *testing.F) {
	f.Add(10, 20, 30, 30, 20, 10, 1e-5, 5)
	f.Fuzz(func(t *testing.T, a, b, c, d, e, g int, delta float64, minCount int) {
		c0 := []int{a & 0xFFFF, b & 0xFFFF, c & 0xFFFF}
		c1 := []int{d & 0xFFFF, e & 0xFFFF, g & 0xFFFF}
		if !(delta >= 0 && delta < 1) {
			delta = 0
		}
		minCount &= 0xFF
		got := analysis.BucketEstimate(c0, c1, delta, minCount)
		total := float64(c0[0] + c0[1] + c0[2])
		if most := math.Log(total / math.Max(1, float64(minCount))); minCount > 0 && got > most+1e-9 {
			t.Errorf("estimate %v above its ceiling %v", got, most)
		}
		if swapped := analysis.BucketEstimate(c1, c0, delta, minCount); delta == 0 && minCount == 0 &&
			got != swapped && math.Abs(got-swapped) > 1e-9 {
			t.Errorf("the worlds exchanged: %v, before %v", swapped, got)
		}
	})
}
