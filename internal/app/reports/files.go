package reports

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/dpwatch/dpwatch/internal/read"
	reports "github.com/dpwatch/dpwatch/internal/report"
)

// Write makes a directory with the files of a report, its manifest and the signature, and returns their names. Only
// their owner may read them.
func Write(r *Report, o Options) ([]string, error) {
	var key ed25519.PrivateKey
	if o.Key != "" {
		var err error
		if key, err = readKey(o.Key); err != nil {
			return nil, err
		}
	}
	if key != nil {
		r.key = reports.Fingerprint(key.Public().(ed25519.PublicKey)) //nolint:forcetypeassert // of this package
	}
	m := r.manifest()
	for _, format := range o.Formats {
		text, err := r.encode(format)
		if err != nil {
			return nil, fmt.Errorf("report: %s: %w", format, err)
		}
		m.Files = append(m.Files, reports.NewFile("report."+format, text))
	}
	text, signature, err := m.Sign(key)
	if err != nil {
		return nil, err
	}
	files := append(m.Files, reports.NewFile(reports.ManifestName, text))
	if key != nil {
		files = append(files, reports.NewFile(reports.SignatureName, signature))
	}
	return writeReportFiles(o.Dir, files)
}

// checkFiles returns an error if the files of a report cannot be written, before it is made.
func (o *Options) checkFiles() error {
	if o.Key != "" {
		if _, err := readKey(o.Key); err != nil {
			return err
		}
	}
	if _, err := os.Lstat(o.Dir); err == nil {
		return fmt.Errorf("report: %s exists and is not replaced: remove it or give another --dir", o.Dir)
	}
	return nil
}

func writeReportFiles(dir string, files []reports.File) (names []string, err error) {
	if err := os.Mkdir(dir, 0o700); errors.Is(err, fs.ErrExist) {
		return nil, fmt.Errorf("report: %s exists and is not replaced: remove it or give another --dir", dir)
	} else if err != nil {
		return nil, fmt.Errorf("report: %w", err)
	}
	for _, f := range files {
		path := filepath.Join(dir, f.Name)
		if err := os.WriteFile(path, f.Text(), 0o600); err != nil {
			return names, fmt.Errorf("report: %w", err)
		}
		names = append(names, path)
	}
	return names, nil
}

// encode returns the report in a format.
func (r *Report) encode(format string) ([]byte, error) {
	switch format {
	case "html":
		return reports.HTML(r.document())
	case "sarif":
		var b bytes.Buffer
		err := read.SARIF(r.explanations(), r.config, r.Version).Write(&b)
		return b.Bytes(), err
	}
	text, err := json.MarshalIndent(r, "", "  ")
	return append(text, '\n'), err
}

// identity is that of an audit in a report.
type identity struct{ engine, key string }

// explanations returns those of all audits: of audits that are no findings and have a conclusion, with what the tables of
// the ledger have.
func (r *Report) explanations() []read.Explanation {
	found := map[identity]read.Explanation{}
	for _, x := range r.Findings {
		found[identity{x.Audit.EngineName, x.Audit.Key}] = x
	}
	all := make([]read.Explanation, 0, len(r.Audits))
	for _, a := range r.Audits {
		x, known := found[identity{a.Engine, a.Key}]
		switch {
		case known:
		case a.open != nil:
			x = *a.open
		default:
			x = read.Explain(a.stored, nil)
			x.Audit.EngineName = a.Engine
		}
		all = append(all, x)
	}
	return all
}

func readKey(path string) (ed25519.PrivateKey, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("--key: %w", err)
	}
	if info.Mode().Perm()&0o077 != 0 {
		return nil, fmt.Errorf("--key: %s can be read by others (mode %04o): chmod 600 it", path, info.Mode().Perm())
	}
	text, err := os.ReadFile(path) // #nosec G304 -- the user names the file
	if err != nil {
		return nil, fmt.Errorf("--key: %w", err)
	}
	key, err := reports.DecodePrivate(text)
	if err != nil {
		return nil, fmt.Errorf("--key: %s: %w", path, err)
	}
	return key, nil
}

// NewKey returns a new key and its public key in PEM.
func NewKey() (private, public []byte, err error) {
	p, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	if private, err = reports.EncodePrivate(key); err == nil {
		public, err = reports.EncodePublic(p)
	}
	return private, public, err
}

// VerifiedReport is the result of Verify. Its JSON form is a contract with scripts.
type VerifiedReport struct {
	Dir      string           `json:"directory"`
	Key      string           `json:"key"`       // fingerprint of the public key
	KeyGiven bool             `json:"key_given"` // by --public-key, so that it is known who signed
	Faults   []string         `json:"faults"`
	Manifest reports.Manifest `json:"manifest"`
}

// openManifest reads a manifest, given by its path or that of its directory, and verifies its signature; publicKey is
// the path of the key it must have, or "".
func openManifest(path, publicKey string) (v VerifiedReport, err error) {
	if info, err := os.Stat(path); err != nil {
		return v, err
	} else if info.IsDir() {
		path = filepath.Join(path, reports.ManifestName)
	}
	v.Dir, v.KeyGiven = filepath.Dir(path), publicKey != ""
	text, err := os.ReadFile(path) // #nosec G304 -- the user names the file
	if err != nil {
		return v, err
	}
	signature, err := os.ReadFile(filepath.Join(v.Dir, reports.SignatureName))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return v, err
	}
	var public ed25519.PublicKey
	if publicKey != "" {
		given, err := os.ReadFile(publicKey) // #nosec G304 -- the user names the file
		if err == nil {
			public, err = reports.DecodePublic(given)
		}
		if err != nil {
			return v, fmt.Errorf("--public-key: %w", err)
		}
	}
	if v.Manifest, err = reports.Open(text, signature, public); err != nil {
		return v, err
	}
	key, err := reports.DecodePublic([]byte(v.Manifest.PublicKey))
	if err == nil {
		v.Key = reports.Fingerprint(key)
	}
	return v, err
}

// Verify verifies the signature of a manifest and the files that it lists.
func Verify(path, publicKey string) (VerifiedReport, error) {
	v, err := openManifest(path, publicKey)
	if err != nil {
		return v, err
	}
	entries, err := os.ReadDir(v.Dir)
	if err != nil {
		return v, err
	}
	var names []string
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), ".pub") {
			names = append(names, e.Name())
		}
	}
	v.Faults = v.Manifest.Compare(names, func(name string) ([]byte, error) { return os.ReadFile(filepath.Join(v.Dir, name)) })
	return v, nil
}
