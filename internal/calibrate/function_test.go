package calibrate_test

import (
	"testing"

	"github.com/dpwatch/dpwatch/internal/calibrate"
)

func TestParseFunction(t *testing.T) {
	t.Parallel()
	for text, good := range map[string]bool{
		"count=my_count($value, $epsilon)":              true,
		" sum = s($value, $lower, $upper, $epsilon)":    true,
		"average=a('$table', $epsilon, $delta)":         true,
		"count=":                                        false,
		"my_count($value, $epsilon)":                    false,
		"median=m($value, $epsilon)":                    false,
		"count=my_count($value, $eps)":                  false,
		"count=my_count($value, 0.5)":                   false,
		"count=my_count($epsilons)":                     false,
		"count=lap(1 / $epsilon) + count(*) = count(*)": true,
	} {
		if _, err := calibrate.ParseFunction(text); (err == nil) != good {
			t.Errorf("%q: %v", text, err)
		}
	}
}
