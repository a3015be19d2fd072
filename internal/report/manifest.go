package report

import (
	"bytes"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"time"
)

// Names of the files beside those of the report. The signature is that of the bytes of the manifest, 64 bytes: openssl
// verifies it as well.
const (
	ManifestName  = "manifest.json"
	SignatureName = "manifest.sig"
)

// Format is the version of the manifest.
const Format = 1

// Manifest says what a report was made from, and has the hashes of its files. Its JSON form is a contract with scripts.
// It holds no values of rows and no statements.
type Manifest struct {
	Format  int       `json:"format"`
	Created time.Time `json:"created"`
	Version string    `json:"dpwatch_version"`
	// PostgreSQL has the versions of the servers of "ledger" and "shadow", by engine if there are several; "" = not
	// known.
	PostgreSQL map[string]string `json:"postgresql_versions"`
	// Configurations are hashes of what decides about audits in the configuration, by engine.
	Configurations map[string]string `json:"configuration_hashes"`
	Since          *time.Time        `json:"since"` // null = ever
	Until          time.Time         `json:"until"`
	Revealed       bool              `json:"revealed"` // the files have values of rows and statements
	Verdicts       map[string]int    `json:"verdicts"` // audits by verdict or state
	Audits         []Audit           `json:"audits"`
	Files          []File            `json:"files"`
	PublicKey      string            `json:"public_key"` // PEM; "" = not signed
}

// Audit is an audit of a report.
type Audit struct {
	ID         string   `json:"id"`
	Key        string   `json:"key"`
	Engine     string   `json:"engine"`
	Verdict    string   `json:"verdict"` // or state
	Epsilon    *float64 `json:"epsilon_claimed"`
	Delta      *float64 `json:"delta_claimed"`
	Curve      string   `json:"claim_curve,omitempty"` // the whole claim if it is a curve, of which the above is one point
	Source     string   `json:"claim_source"`
	Lower      *float64 `json:"epsilon_lower"`
	Confidence *float64 `json:"confidence"` // null = not read, or deterministic answers
	Trials     int64    `json:"trials"`
	Begun      int      `json:"begun"` // how often the evidence began
	// Seeds has the seed of the order of the trials of the present evidence, drawn before the first; null = the
	// evidence was not read. A replay that starts after n turns uses seed + n (replay.Player.Start).
	Seeds       []uint64 `json:"seeds"`
	DataEpoch   string   `json:"data_epoch"`
	EngineEpoch string   `json:"engine_epoch"`
	Evidence    string   `json:"evidence_sha256,omitempty"` // of the evidence in the ledger, if it was read
}

// File is a file of a report.
type File struct {
	Name   string `json:"name"`
	Bytes  int    `json:"bytes"`
	SHA256 string `json:"sha256"`
	text   []byte
}

// NewFile returns a file with its hash.
func NewFile(name string, text []byte) File {
	return File{Name: name, Bytes: len(text), SHA256: Hash(text), text: text}
}

// Text returns the contents of a file of NewFile.
func (f *File) Text() []byte { return f.text }

// Hash returns the SHA-256 of a text in hexadecimal digits.
func Hash(text []byte) string {
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// Sign returns the bytes of the manifest and their signature. key may be nil: then there is none.
func (m *Manifest) Sign(key ed25519.PrivateKey) (text, signature []byte, err error) {
	m.PublicKey = ""
	if key != nil {
		public, err := EncodePublic(key.Public().(ed25519.PublicKey))
		if err != nil {
			return nil, nil, err
		}
		m.PublicKey = string(public)
	}
	text, err = json.MarshalIndent(m, "", "  ")
	if err != nil {
		return nil, nil, err
	}
	text = append(text, '\n')
	if key != nil {
		signature = ed25519.Sign(key, text)
	}
	return text, signature, nil
}

// Open returns the manifest of text if the signature is that of the key in it and, unless public is nil, that key is
// public.
func Open(text, signature []byte, public ed25519.PublicKey) (Manifest, error) {
	var m Manifest
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&m); err != nil {
		return m, fmt.Errorf("%s is damaged: %w", ManifestName, err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return m, fmt.Errorf("%s is damaged: text follows its end", ManifestName)
	}
	if m.Format != Format {
		return m, fmt.Errorf("%s has format %d; this dpwatch reads format %d", ManifestName, m.Format, Format)
	}
	if m.PublicKey == "" {
		return m, errors.New("the manifest is not signed: make the report with --key")
	}
	key, err := DecodePublic([]byte(m.PublicKey))
	switch {
	case err != nil:
		return m, fmt.Errorf("the public key in %s: %w", ManifestName, err)
	case public != nil && !public.Equal(key):
		return m, fmt.Errorf("%s was signed with another key, %s", ManifestName, Fingerprint(key))
	case !ed25519.Verify(key, text, signature):
		return m, fmt.Errorf("%s does not have the signature in %s: one of them was changed", ManifestName, SignatureName)
	}
	return m, nil
}

// Compare returns what is wrong with the files of a report. read returns the contents of a file, and names are those
// that exist.
func (m *Manifest) Compare(names []string, read func(name string) ([]byte, error)) (faults []string) {
	known := []string{ManifestName, SignatureName}
	for _, f := range m.Files {
		if f.Name != path.Base(f.Name) || f.Name == "." || f.Name == ".." {
			faults = append(faults, fmt.Sprintf("%q: not the name of a file", f.Name))
			continue
		}
		known = append(known, f.Name)
		text, err := read(f.Name)
		switch {
		case err != nil:
			faults = append(faults, fmt.Sprintf("%s: %v", f.Name, err))
		case len(text) != f.Bytes || Hash(text) != f.SHA256:
			faults = append(faults, f.Name+": not the file of the manifest: it was changed or replaced")
		}
	}
	for _, name := range names {
		if !slices.Contains(known, name) {
			faults = append(faults, name+": not in the manifest")
		}
	}
	return faults
}
