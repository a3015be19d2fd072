package recorded_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dpwatch/dpwatch/internal/outcome"
	"github.com/dpwatch/dpwatch/internal/recorded"
)

// file writes a file with a name and returns its path.
func file(t testing.TB, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// all reads every pair and returns the results in a short form: rows separated by "; ", NULL as -.
func all(t *testing.T, p *recorded.Pair) (worlds [2][]string) {
	t.Helper()
	for range p.Pairs() {
		x, y, err := p.Next()
		if err != nil {
			t.Fatal(err)
		}
		worlds[0] = append(worlds[0], brief(x))
		worlds[1] = append(worlds[1], brief(y))
	}
	if err := p.Rest(); err != nil {
		t.Fatal(err)
	}
	return worlds
}

func brief(o outcome.Outcome) string {
	if o.Failed() {
		return "error " + o.SQLState
	}
	var rows []string
	for _, row := range o.Rows {
		var values []string
		for _, v := range row {
			switch v.Kind {
			case outcome.Number:
				values = append(values, strings.TrimSuffix(strings.TrimRight(fmtFloat(v.Num), "0"), "."))
			case outcome.Text:
				values = append(values, "'"+v.Text+"'")
			default:
				values = append(values, "-")
			}
		}
		rows = append(rows, strings.Join(values, " "))
	}
	return strings.Join(rows, "; ")
}

func TestOpen(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name    string
		text    string // of both files
		options recorded.Options
		want    []string
		format  recorded.Format
		columns []string
	}{
		{"numbers", "1\n2.5\n", recorded.Options{}, []string{"1", "2.5"}, recorded.Lines, nil},
		{"words and an empty line", "yes\n\nno\n", recorded.Options{}, []string{"'yes'", "", "'no'"}, recorded.Lines, nil},
		{"hyphens", "-\n--\n-\n---\n", recorded.Options{}, []string{"'-'", "'--'", "'-'", "'---'"}, recorded.Lines, nil},
		{"words with commas here and there", "Paris\nLondon, Ontario\nRome\nOslo\n", recorded.Options{}, []string{"'Paris'", "'London, Ontario'", "'Rome'", "'Oslo'"}, recorded.Lines, nil},
		{"a mark of byte order and CR LF", "\ufeff1\r\n2\r\n", recorded.Options{}, []string{"1", "2"}, recorded.Lines, nil},
		{"JSON lines", `{"rows":[["a",1]]}` + "\n" + `{"error":"22012"}` + "\n", recorded.Options{}, []string{"'a' 1", "error 22012"}, recorded.JSONL, nil},
		{"one column and its name", "n\n1\n2\n", recorded.Options{}, []string{"1", "2"}, recorded.CSV, []string{"n"}},
		{"one column, as lines", "n\n1\n2\n", recorded.Options{Format: recorded.Lines}, []string{"'n'", "1", "2"}, recorded.Lines, nil},
		{"CSV with a header", "n,m\n1,x\n2.5,\n", recorded.Options{}, []string{"1 'x'", "2.5 -"}, recorded.CSV, []string{"n", "m"}},
		{"CSV, a mark of byte order and CR LF", "\ufeffn,m\r\n1,\"a, \"\"b\"\"\"\r\n\r\n", recorded.Options{}, []string{`1 'a, "b"'`, ""}, recorded.CSV, []string{"n", "m"}},
		{"quoted line breaks and an empty text", "n,m\n1,\"a\nb\"\n2,\"\"\n", recorded.Options{}, []string{"1 'a\nb'", "2 ''"}, recorded.CSV, []string{"n", "m"}},
		{"words with semicolons, as lines", "a;b\nc;d\n", recorded.Options{Format: recorded.Lines}, []string{"'a;b'", "'c;d'"}, recorded.Lines, nil},
		{"texts with a header", "a,b\nc,d\ne,f\n", recorded.Options{Format: recorded.CSV}, []string{"'c' 'd'", "'e' 'f'"}, recorded.CSV, []string{"a", "b"}},
		{
			"long", "run,grp,n\n1,a,0.5\n1,b,2\n2,a,3\n3,b,4\n3,a,5\n",
			recorded.Options{Trial: "run", Keys: []string{"grp"}},
			[]string{"'a' 0.5; 'b' 2", "'a' 3", "'b' 4; 'a' 5"},
			recorded.CSV,
			[]string{"run", "grp", "n"},
		},
		{"long, trials in words", "run,n\nx,0.5\nx,2\ny,3\n", recorded.Options{Trial: "run"}, []string{"0.5; 2", "3"}, recorded.CSV, []string{"run", "n"}},
		{"long with gaps", "run,n\n1,0.5\n4,3\n", recorded.Options{Trial: "run", FillGaps: true}, []string{"0.5", "", "", "3"}, recorded.CSV, []string{"run", "n"}},
		{"a key that is a number once is a text", "run,k,n\n1,7,0.5\n1,x,3\n", recorded.Options{Trial: "run", Keys: []string{"k"}}, []string{"'7' 0.5; 'x' 3"}, recorded.CSV, []string{"run", "k", "n"}},
		{"the index that pandas writes is the trial", ",n\n0,0.5\n1,3\n", recorded.Options{Trial: "1"}, []string{"0.5", "3"}, recorded.CSV, []string{"1", "n"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			p, err := recorded.Open(file(t, "d0", tc.text), file(t, "d1", tc.text), tc.options)
			if err != nil {
				t.Fatal(err)
			}
			defer p.Close()
			got := all(t, p)
			if diff := cmp.Diff([2][]string{tc.want, tc.want}, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
			in := p.Inputs()[1]
			if in.Format != tc.format || cmp.Diff(tc.columns, in.Columns) != "" || in.Trials != len(tc.want) {
				t.Errorf("read as %+v", in)
			}
		})
	}
}

func TestOpenRefuses(t *testing.T) {
	t.Parallel()
	count := func(format string) string {
		var b strings.Builder
		for i := range 30 {
			b.WriteString(strings.NewReplacer("$i", fmtInt(i), "$j", fmtInt(i/3), "$k", string(rune('a'+i%3)), "$r", fmtInt(i*i%17)).Replace(format))
		}
		return b.String()
	}
	const ok = "1\n2\n"
	for _, tc := range []struct {
		name, d0, d1 string // d1 "" = as d0
		options      recorded.Options
		want         string
	}{
		{"UTF-16", "\xff\xfe1\x00\n\x00", "", recorded.Options{}, "d0:1: UTF-16"},
		{"gzip", "\x1f\x8b\x08\x00", "", recorded.Options{}, "compressed by gzip"},
		{"binary", "PK\x03\x04\x00\x00", "", recorded.Options{}, "a binary file"},
		{"CR alone", "1\r2\r3\r", "", recorded.Options{}, "lines end with CR alone"},
		{"a JSON array", "[{\"n\":1},\n{\"n\":2}]\n", "", recorded.Options{}, "d0:1: a JSON array"},
		{"psql's table", " count \n-------\n    12\n(1 row)\n", "", recorded.Options{}, "d0:2: the table that psql prints"},
		{"ragged", "a,b\n1,2\n3\n", "", recorded.Options{}, "d0:3: not as many fields"},
		{"ragged after the sample", "a,b\n" + strings.Repeat("1,2.5\n", 60_000) + "3\n", "", recorded.Options{}, "d0:60002: 1 fields, and line 1 has 2"},
		{"blanks", "1 2\n3 4\n", "", recorded.Options{}, "d0:1: several numbers separated by blanks"},
		{"the header again", "a,b\n1,2\na,b\n3,4\n", "", recorded.Options{}, "d0:3: the header again"},
		{"a header or not", "a,b\nc,d\n", "", recorded.Options{}, "d0:1: cannot tell whether this line holds column names"},
		{"one name twice", "a,a\n1,2\n", "", recorded.Options{}, "d0:1: two columns have the name a"},
		{"open quotation mark", "a,b\n1,\"x\n2,y\n", "", recorded.Options{Format: recorded.CSV}, "d0:2: a quotation mark is not closed"},
		{"text after a quotation mark", "a,b\n1,\"x\"y\n", "", recorded.Options{Format: recorded.CSV}, "d0:2: text follows a closing quotation mark"},
		{"decimal commas", "a,b\n\"1,5\",\"2,5\"\n\"1,7\",3\n", "", recorded.Options{}, "d0:2: column a holds a number with a comma"},
		{"semicolons", "a;b\n1,5;2,5\n1,7;3\n", "", recorded.Options{}, "d0:1: fields are separated by semicolons: write CSV with commas"},
		{"semicolons as CSV", "a;b\n1;2\n", "", recorded.Options{Format: recorded.CSV}, "d0:1: fields are separated by semicolons"},
		{"tabs", "\nn\tm\n1\t\\N\n3\t4\n", "", recorded.Options{}, "d0:2: fields are separated by tabs: write CSV with commas"},
		{"no header", "1.5,x\n2,y\n", "", recorded.Options{}, "d0:1: a number in place of a column name"},
		{"no header, as CSV", "1.5,x\n2,y\n", "", recorded.Options{Format: recorded.CSV}, "d0:1: a number in place of a column name"},
		{"texts that come again", "a,b\nc,b\na,b\n", "", recorded.Options{}, "d0:1: a text of this line comes again in its column"},
		{"texts that come again, as CSV", "a,b\nc,b\na,b\n", "", recorded.Options{Format: recorded.CSV}, "d0:1: a text of this line comes again in its column"},
		{"a column without a name", "a,,b\n1,2,3\n", "", recorded.Options{}, "d0:1: column 2 has no name"},
		{"a column called trial", "trial,n\n1,0.5\n1,0.7\n", "", recorded.Options{}, "d0:1: column trial: give --trial trial"},
		{"a column that counts", "x,n\n" + count("$i,$r\n"), "", recorded.Options{}, "d0:1: column x counts upwards line by line: give --trial x"},
		{"a column that counts trials", "x,n\n" + count("$j,$r\n"), "", recorded.Options{}, "d0:1: column x counts upwards line by line: give --trial x"},
		{"groups in turn without a trial", "g,n\n" + strings.Repeat("a,1.5\nb,2.5\nc,3.5\n", 20), "", recorded.Options{}, "d0:1: column g repeats the same 3 values"},
		{"lines numbered beside the trial", "t,x,n\n" + count("$j,$i,$r\n"), "", recorded.Options{Trial: "t"}, "d0:1: column x numbers the lines"},
		{"no such trial column", "run,n\n1,0.5\n", "", recorded.Options{Trial: "trial"}, "d0:1: --trial trial: no column has this name"},
		{"a position", "run,n\n1,0.5\n", "", recorded.Options{Trial: "1"}, "d0:1: --trial 1: no column has this name"},
		{"key and trial in one", "run,n\n1,0.5\n", "", recorded.Options{Trial: "run", Keys: []string{"run"}}, "column run is --trial"},
		{"trial without results", "run\n1\n", "", recorded.Options{Format: recorded.CSV, Trial: "run"}, "a trial needs a result too"},
		{"scattered trials", "run,n\n1,0.5\n2,0.5\n1,0.5\n", "", recorded.Options{Trial: "run"}, "d0:4: this trial has rows further up: sort"},
		{"a trial without a number", "run,n\n1,0.5\n,0.5\n", "", recorded.Options{Trial: "run"}, "d0:3: column run, the trial, is empty"},
		{"gaps", "run,n\n1,0.5\n3,0.5\n", "", recorded.Options{Trial: "run"}, "1 of the trials' numbers are missing"},
		{"a gap at the end", "run,n\n1,0.5\n2,0.5\n3,0.5\n", "run,n\n1,0.5\n2,0.5\n", recorded.Options{Trial: "run"}, "the trials are 1 to 3"},
		{"a gap too wide to fill", "run,n\n1,0.5\n900000,0.5\n", "", recorded.Options{Trial: "run", FillGaps: true}, "number the trials without such gaps"},
		{"trials that descend, to fill", "run,n\n2,0.5\n1,0.5\n", "", recorded.Options{Trial: "run", FillGaps: true}, "d0:3: --fill-gaps"},
		{"words to fill", "run,n\nx,0.5\ny,0.5\n", "", recorded.Options{Trial: "run", FillGaps: true}, "no whole numbers"},
		{"--trial on lines", ok, "", recorded.Options{Trial: "run"}, "are for CSV, and this file has one result a line"},
		{"--key without --trial", ok, "", recorded.Options{Keys: []string{"n"}}, "--key needs --trial"},
		{"--fill-gaps without --trial", ok, "", recorded.Options{FillGaps: true}, "--fill-gaps needs --trial"},
		{"no such format", ok, "", recorded.Options{Format: "xml"}, "--format"},
		{"a former format", ok, "", recorded.Options{Format: "tsv"}, "--format \"tsv\": must be auto, lines, csv or jsonl"},
		{"not JSON lines", "{\"rows\":[]}\n5\n", "", recorded.Options{Format: recorded.JSONL}, "d0:2: no JSON object"},
		{"formats differ", "a,b\n1,2\n", ok, recorded.Options{}, "write both alike"},
		{"columns differ", "a,b\n1,2\n", "b,a\n1,2\n", recorded.Options{}, "the same columns in the same order"},
		{"one header", "a,b\n1,2\n", "1,2\n3,4\n", recorded.Options{}, "d1:1: a number in place of a column name"},
		{"a broken line", ok, "1\n{\"rows\":[[1]\n", recorded.Options{}, "d1:2: not {"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			if tc.d1 == "" {
				tc.d1 = tc.d0
			}
			p, err := recorded.Open(file(t, "d0", tc.d0), file(t, "d1", tc.d1), tc.options)
			if err == nil {
				defer p.Close()
				for range p.Pairs() {
					if _, _, err = p.Next(); err != nil {
						break
					}
				}
			}
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v; want it to contain %q", err, tc.want)
			}
		})
	}
}

// TestOneWordFirst: a first word that is in only one file, or before other words, is a result; the report warns.
func TestOneWordFirst(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		d0, d1 string
		trials int
		warns  bool
	}{
		{"n\n1\n2\n", "1\n2\n3\n", 3, true},
		{"n\n1\n2\n", "m\n1\n2\n", 3, true},
		{"n\n1\nn\n", "n\n1\nn\n", 3, false},
	} {
		p, err := recorded.Open(file(t, "d0", tc.d0), file(t, "d1", tc.d1), recorded.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer p.Close()
		warned := strings.Contains(strings.Join(p.Warnings(), "\n"), "d0:1: the only word among numbers")
		if p.Pairs() != tc.trials || warned != tc.warns {
			t.Errorf("%q: %d trials, %q", tc.d0, p.Pairs(), p.Warnings())
		}
	}
}

// TestNoValuesInErrors: errors and warnings name lines and columns, never values of a row.
func TestNoValuesInErrors(t *testing.T) {
	t.Parallel()
	const secret = "MRN777"
	for _, text := range []string{
		"a,b\n1,2\n1," + secret + ",3\n", "a,b\n1," + secret + "\n2,\"" + secret + "\n", secret + ",1\n" + secret + "\n",
		"run,n\n" + secret + ",1\n2,3\n" + secret + ",1\n", "n,m\n1,2\n2," + secret + "\n", secret + "\n1\n2\n" + secret + "\n3,4,5\n",
		`{"rows":[["` + secret + `"]` + "\n", `{"rows":[["` + secret + `"]], "x": "` + secret + `"}` + "\n",
	} {
		for _, o := range []recorded.Options{{}, {Trial: "run"}, {Format: recorded.CSV}, {Format: recorded.JSONL}} {
			p, err := recorded.Open(file(t, "d0", text), file(t, "d1", text), o)
			told := ""
			if err == nil {
				defer p.Close()
				told = strings.Join(p.Warnings(), "\n")
				for err == nil && p.Pairs() > 0 {
					_, _, err = p.Next()
				}
			}
			if err != nil {
				told += err.Error()
			}
			if strings.Contains(told, secret) {
				t.Errorf("%q: %s", text, told)
			}
		}
	}
}
