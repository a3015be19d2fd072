package textnumber_test

import (
	"slices"
	"testing"

	"github.com/dpwatch/dpwatch/internal/textnumber"
)

func TestLearn(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		texts []string
		want  [][]float64 // nil = no form
		plain bool
	}{
		{"money", []string{"$1,234.56", "-$5.00", "$0.10"}, [][]float64{{1234.56}, {-5}, {.1}}, false},
		{"money in parentheses", []string{"($5.00)", "$12,345,678.90"}, [][]float64{{-5}, {12345678.9}}, false},
		{"money with a comma", []string{"1.234,56 €", "-5,00 €"}, [][]float64{{1234.56}, {-5}}, false},
		{"money in words", []string{"EUR 5.25", "EUR -7.00"}, [][]float64{{5.25}, {-7}}, false},
		{"another currency", []string{"$5.00", "€5.00"}, nil, false},
		{"two kinds of minus", []string{"-$5.00", "($5.00)"}, nil, false},
		{"thousands", []string{"1,234", "12,345"}, [][]float64{{1234}, {12345}}, false},
		{"bare numbers", []string{"1", "-2.5", "1e3"}, [][]float64{{1}, {-2.5}, {1000}}, true},
		{"one decimal more", []string{"1.50", "2.5"}, nil, false},
		{"decimals as needed", []string{"1.25", "2.5", "3"}, [][]float64{{1.25}, {2.5}, {3}}, true},
		{"leading zeros", []string{"02139", "10001"}, nil, false},
		{"date", []string{"2000-01-02", "1999-12-31"}, [][]float64{{1}, {-1}}, false},
		{"no date", []string{"2000-02-30"}, nil, false},
		{"timestamp", []string{"2000-01-01 00:00:01.5", "2000-01-02T00:00:00"}, [][]float64{{1.5}, {86400}}, false},
		{"timestamp with offset", []string{"2000-01-01 01:00:00+01", "2000-01-01 00:00:00-03:30"}, [][]float64{{0}, {12600}}, false},
		{"interval", []string{"1 day 02:00:00", "-3 days -00:00:01.25", "2 mons", "00:00:00"}, [][]float64{{93600}, {-3*86400 - 1.25}, {60 * 86400}, {0}}, false},
		{"array", []string{"{1,2.5}", "{-3,4}"}, [][]float64{{1, 2.5}, {-3, 4}}, false},
		{"arrays of other lengths", []string{"{1,2}", "{1,2,3}"}, nil, false},
		{"JSON", []string{`{"n": 1.5, "by": ["a7", 2]}`, `{"n": -2, "by": ["a7", 3]}`}, [][]float64{{1.5, 2}, {-2, 3}}, false},
		{"JSON with another text", []string{`{"n": 1, "k": "a"}`, `{"n": 1, "k": "b"}`}, nil, false},
		{"point", []string{"(1,2)", "(3,-4)"}, [][]float64{{1, 2}, {3, -4}}, false},
		{"a wrapper", []string{"np.float64(1000.02)", "np.float64(-3.5)", "np.float64(7)"}, [][]float64{{1000.02}, {-3.5}, {7}}, false},
		{"another wrapper", []string{"Decimal('3.25')", "Decimal('-1e-9')"}, [][]float64{{3.25}, {-1e-9}}, false},
		{"a percentage", []string{"12.5 %", "-3.2 %"}, [][]float64{{12.5}, {-3.2}}, false},
		{"a sentence", []string{"about 12.5 of 90 people", "about 7.5 of 91 people"}, [][]float64{{12.5, 90}, {7.5, 91}}, false},
		{"a document of wrappers", []string{`{"n": "np.float64(1.5)"}`, `{"n": "np.float64(2.25)"}`}, [][]float64{{1.5}, {2.25}}, false},
		{"addresses", []string{"at 10.0.0.1", "at 10.0.0.2"}, nil, false},
		{"versions", []string{"v1.2", "v1.3"}, nil, false},
		{"words", []string{"yes", "no"}, nil, false},
		{"names with numbers", []string{"MRN777", "MRN778"}, nil, false},
		{"names with a blank", []string{"user 17", "user 18"}, nil, false},
		{"UUID", []string{"f47ac10b-58cc-4372-a567-0e02b2c3d479", "147ac10b-58cc-4372-a567-0e02b2c3d479"}, nil, false},
		{"out of range", []string{"1e999"}, nil, false},
		{"empty", []string{""}, nil, false},
		{"nothing", nil, nil, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			f := textnumber.Learn(c.texts)
			if c.want == nil {
				if f.Parts() != 0 {
					t.Errorf("%q are read by %+v", c.texts, f)
				}
				return
			}
			if f.Parts() != len(c.want[0]) || f.Plain() != c.plain {
				t.Fatalf("%d numbers, plain %v, want %d, %v", f.Parts(), f.Plain(), len(c.want[0]), c.plain)
			}
			got := make([]float64, f.Parts())
			for i, text := range c.texts {
				if !f.Read(text, got) || !slices.Equal(got, c.want[i]) {
					t.Errorf("%q: %v, want %v", text, got, c.want[i])
				}
			}
		})
	}
}

// TestRead: a text of another form is not read.
func TestRead(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ learned, other string }{
		{"$5.25", "$5.5"},
		{"$5.25", "5.25"},
		{"{1,2}", "{1,NULL}"},
		{"{1,2}", "{1, 2}"},
		{"2000-01-01", "infinity"},
		{`{"a": 1}`, `{"b": 1}`},
		{"00:00:01", "1"},
		{"1.5", "1.50"},
		{"1.5", "NaN"},
		{"-$5.00", "($5.00)"},
		{"(1,2)", "(1,2"},
		{"about 1.5", "above 1.5"},
	} {
		f := textnumber.Learn([]string{c.learned})
		if f.Parts() == 0 {
			t.Errorf("%q is not read", c.learned)
		}
		if f.Read(c.other, make([]float64, f.Parts())) {
			t.Errorf("%q is read like %q", c.other, c.learned)
		}
	}
}

// FuzzLearn: the texts from which a form is learned are parsed to finite numbers, and no other text makes Read panic.
func FuzzLearn(f *testing.F) {
	for _, s := range []string{"$1,234.56", "(5,00 €)", "2000-01-01 00:00:00.5+02", "1 year -2 mons 00:00:01", `{"a": [1, -2.5e3]}`, "-", "-.", "EUR", "$", "{1,2", "()", "+1", "€\xff", "np.float64(1.5)"} {
		f.Add(s, "1")
	}
	f.Fuzz(func(t *testing.T, text, other string) {
		form := textnumber.Learn([]string{text})
		dst := make([]float64, form.Parts())
		if form.Parts() == 0 {
			if form.Read(text, dst) {
				t.Errorf("%q is read by no form", text)
			}
			return
		}
		if !form.Read(text, dst) {
			t.Errorf("%q is learned and not read", text)
		}
		for _, x := range dst {
			if x-x != 0 {
				t.Errorf("%q: %v", text, dst)
			}
		}
		form.Read(other, dst)
	})
}
