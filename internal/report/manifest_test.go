package report_test

import (
	"bytes"
	"crypto/ed25519"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/dpwatch/dpwatch/internal/report"
)

// signed returns a manifest of two files with its signature, from a fixed key.
func signed(t *testing.T) (text, signature []byte, key ed25519.PrivateKey) {
	t.Helper()
	key = ed25519.NewKeyFromSeed(bytes.Repeat([]byte{7}, ed25519.SeedSize))
	lower := 0.75
	m := report.Manifest{
		Format: report.Format, Created: time.Date(2027, 1, 2, 3, 4, 5, 0, time.UTC), Version: "1.0",
		Audits: []report.Audit{{ID: "aaaa", Key: "aaaabbbb", Engine: "e", Verdict: "violation", Lower: &lower, Trials: 100, Begun: 1}},
		Files:  []report.File{report.NewFile("report.html", []byte("<p>")), report.NewFile("report.json", []byte("{}"))},
	}
	text, signature, err := m.Sign(key)
	if err != nil {
		t.Fatal(err)
	}
	return text, signature, key
}

// TestTampering: every change of a byte of the manifest or of its signature is found: of each bit, its loss, and its
// repetition.
func TestTampering(t *testing.T) {
	t.Parallel()
	text, signature, key := signed(t)
	if _, err := report.Open(text, signature, key.Public().(ed25519.PublicKey)); err != nil {
		t.Fatal(err)
	}
	for part, whole := range [][]byte{text, signature} {
		for i := range whole {
			for kind, changed := range [][]byte{
				flipped(whole, i, 1), flipped(whole, i, 0x20), flipped(whole, i, 0x80),
				append(append([]byte{}, whole[:i]...), whole[i+1:]...), append(append(append([]byte{}, whole[:i]...), whole[i]), whole[i:]...),
			} {
				tried := [][]byte{text, signature}
				tried[part] = changed
				if _, err := report.Open(tried[0], tried[1], nil); err == nil && !bytes.Equal(changed, whole) {
					t.Fatalf("change %d of byte %d of part %d is not found", kind, i, part)
				}
			}
		}
	}
}

func flipped(text []byte, i int, bits byte) []byte {
	changed := bytes.Clone(text)
	changed[i] ^= bits
	return changed
}

// TestAnotherKey: a manifest that someone else signed again is accepted only if no key is required.
func TestAnotherKey(t *testing.T) {
	t.Parallel()
	text, signature, key := signed(t)
	m, err := report.Open(text, signature, nil)
	if err != nil {
		t.Fatal(err)
	}
	m.Audits[0].Verdict = "no_evidence"
	text, signature, err = m.Sign(ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize)))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := report.Open(text, signature, nil); err != nil {
		t.Error(err)
	}
	if _, err := report.Open(text, signature, key.Public().(ed25519.PublicKey)); err == nil || !strings.Contains(err.Error(), "another key") {
		t.Errorf("%v", err)
	}
	if text, signature, err = m.Sign(nil); err != nil || signature != nil {
		t.Fatal(signature, err)
	}
	if _, err := report.Open(text, nil, nil); err == nil || !strings.Contains(err.Error(), "is not signed") {
		t.Errorf("%v", err)
	}
}

// TestCompare: files that are changed, missing, added or outside of the directory are found.
func TestCompare(t *testing.T) {
	t.Parallel()
	text, signature, _ := signed(t)
	m, err := report.Open(text, signature, nil)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{"report.html": "<p>", "report.json": "{}"}
	read := func(name string) ([]byte, error) {
		text, ok := all[name]
		if !ok {
			return nil, errors.New("no such file")
		}
		return []byte(text), nil
	}
	names := []string{"manifest.json", "manifest.sig", "report.html", "report.json"}
	if faults := m.Compare(names, read); len(faults) != 0 {
		t.Error(faults)
	}
	all["report.html"] = "<q>"
	delete(all, "report.json")
	m.Files = append(m.Files, report.File{Name: "../secret"})
	got := strings.Join(m.Compare(append(names, "extra.pdf"), read), "\n")
	const want = "report.html: not the file of the manifest: it was changed or replaced\nreport.json: no such file\n\"../secret\": not the name of a file\nextra.pdf: not in the manifest"
	if got != want {
		t.Errorf("%s", got)
	}
}

func TestKeys(t *testing.T) {
	t.Parallel()
	_, _, key := signed(t)
	private, err := report.EncodePrivate(key)
	if err != nil {
		t.Fatal(err)
	}
	public, err := report.EncodePublic(key.Public().(ed25519.PublicKey))
	if err != nil {
		t.Fatal(err)
	}
	if k, err := report.DecodePrivate(private); err != nil || !k.Equal(key) {
		t.Error(err)
	}
	if k, err := report.DecodePublic(public); err != nil || !k.Equal(key.Public()) {
		t.Error(err)
	}
	if _, err := report.DecodePrivate(public); err == nil {
		t.Error("a public key was read as a private one")
	}
	if _, err := report.DecodePublic(private); err == nil {
		t.Error("a private key was read as a public one")
	}
}
