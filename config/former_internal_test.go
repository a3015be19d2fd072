package config

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
)

// TestFormerKeys: each key of an earlier version is refused with what replaces it, with file, line and key, also below
// engines; no key has its name; and docs/upgrade.md lists it.
func TestFormerKeys(t *testing.T) {
	t.Parallel()
	upgrade, err := os.ReadFile("../docs/upgrade.md")
	if err != nil {
		t.Fatal(err)
	}
	for key, now := range formerValues {
		if !strings.Contains(string(upgrade), "| `"+key+"` | "+now+" |") {
			t.Errorf("docs/upgrade.md has no row\n| `%s` | %s |", key, now)
		}
	}
	for key, now := range former {
		if slices.Contains(Keys(), key) {
			t.Errorf("%s is a key", key)
		}
		if !strings.Contains(string(upgrade), "| `"+key+"` | "+now+" |") {
			t.Errorf("docs/upgrade.md has no row\n| `%s` | %s |", key, now)
		}
		names := strings.Split(key, ".")
		check := func(text, path string) {
			t.Helper()
			_, err := Parse("f.yaml", []byte(text), func(string) string { return "" })
			if want := fmt.Sprintf("f.yaml:%d: %s: is no longer a key: %s", strings.Count(text, "\n"), path, now); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("no error %q in\n%v", want, err)
			}
		}
		text := "# a comment\n"
		for i, name := range names[:len(names)-1] {
			text += strings.Repeat("  ", i) + name + ":\n"
		}
		last := strings.Repeat("  ", len(names)-1) + names[len(names)-1] + ": 1\n"
		check(text+last, key)
		if slices.Contains([]string{"shadow", "privacy", "neighbours", "claims", "audit", "budgets"}, names[0]) {
			check("engines:\n  - name: a\n    "+strings.ReplaceAll(strings.TrimPrefix(text, "# a comment\n"), "\n", "\n    ")+last, "engines[0]."+key)
		}
	}
}

// TestTuning: the environment variable of tests changes what no key sets, reaches other processes, and has no unknown
// names.
func TestTuning(t *testing.T) {
	t.Parallel()
	const text = "proxy: {listen: 127.0.0.1:1, upstream: 127.0.0.1:2}\nshadow: {dsn: postgres://a@b/c}\nprivacy: {protected: [public.p]}\n"
	with := func(value string) func(string) string {
		return func(name string) string { return map[string]string{TuningVariable: value}[name] }
	}
	_, resolved, err := ParseAndCheck("f", []byte(text), with(`{"retry_after": "200ms", "batch_trials": 7}`))
	if err != nil {
		t.Fatal(err)
	}
	encoded, err := resolved.Encode()
	if err != nil {
		t.Fatal(err)
	}
	c, err := DecodeResolved(encoded)
	want := defaultTuning()
	want.RetryAfter, want.BatchTrials = Duration(200e6), 7
	if err != nil || c.Tuning != want {
		t.Errorf("%+v, %v; want %+v", c.Tuning, err, want)
	}
	if _, err := Parse("f", []byte(text), with(`{"retry": "1s"}`)); err == nil || !strings.Contains(err.Error(), TuningVariable) {
		t.Errorf("an unknown name: %v", err)
	}
}
