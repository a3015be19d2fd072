package rewrite_test

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dpwatch/dpwatch/config"
	"github.com/dpwatch/dpwatch/internal/golden"
	"github.com/dpwatch/dpwatch/rewrite/reasons"
)

const manual = "../docs/rewriting.md"

// TestReasonsInTheManual: the manual contains the complete table that the package generates. -update writes it.
func TestReasonsInTheManual(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(manual)
	if err != nil {
		t.Fatal(err)
	}
	const begin, end = "<!-- reasons: generated, go test ./rewrite -run Manual -update -->\n", "<!-- end of reasons -->\n"
	before, rest, ok := strings.Cut(string(text), begin)
	table, after, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatal("no markers around the table")
	}
	var want strings.Builder
	want.WriteString("| reason | what it means | what may be done |\n|---|---|---|\n")
	texts := reasonTexts()
	for _, r := range reasons.All() {
		meaning, remedy := texts[r][0], texts[r][1]
		if meaning == "" {
			t.Errorf("%s is not explained", r)
		}
		fmt.Fprintf(&want, "| `%s` | %s | %s |\n", r, meaning, remedy)
	}
	if golden.Updating() {
		if err := os.WriteFile(manual, []byte(before+begin+want.String()+end+after), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(want.String(), table); diff != "" {
		t.Errorf("run with -update (-want +got):\n%s", diff)
	}
}

// TestHintsNameKeys: every configuration key named in refusals and in the manual exists.
func TestHintsNameKeys(t *testing.T) {
	t.Parallel()
	key := regexp.MustCompile(`\b(?:privacy|claims|audit|proxy|shadow)\.[a-z_0-9]+`)
	text, err := os.ReadFile(manual)
	if err != nil {
		t.Fatal(err)
	}
	texts := []string{string(text)}
	r := newRewriter(t, options())
	for _, file := range goldenFiles(t) {
		if _, err := r.Analyze(goldenQuery(t, file)); err != nil {
			texts = append(texts, err.Error())
		}
	}
	keys, found := config.Keys(), 0
	for _, text := range texts {
		for _, k := range key.FindAllString(text, -1) {
			if found++; !slices.Contains(keys, k) {
				t.Errorf("%s is no configuration key", k)
			}
		}
	}
	if found < 20 {
		t.Errorf("only %d keys seen", found)
	}
}
