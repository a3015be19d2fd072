package rewrite

import (
	"crypto/sha256"
	"encoding/binary"
	"hash"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/dpwatch/dpwatch/internal/capture"
	"github.com/dpwatch/dpwatch/rewrite/internal/judge"
)

// keyVersion changes whenever the key of some query changes.
const keyVersion = "dpwatch rewrite key 1"

// keySettings returns the settings that affect results, by lower-case name; nil if there are none.
func keySettings(settings map[string]string) map[string]string {
	var kept map[string]string
	for name, value := range settings {
		if name = strings.ToLower(name); judge.AffectsResult(name) {
			if kept == nil {
				kept = map[string]string{}
			}
			kept[name] = value
		}
	}
	return kept
}

// key hashes the parts of Plan.Key, each with its length, so that different lists of parts give different bytes.
func (p *Plan) key(q capture.Query) string {
	h := sha256.New()
	writeString(h, keyVersion)
	writeString(h, q.Database)
	statement := p.expected.hash()
	h.Write(statement[:])
	writeNumber(h, len(q.Params))
	for _, param := range q.Params {
		writeNumber(h, int(param.OID))
		writeNumber(h, int(param.Format))
		if param.Null {
			writeNumber(h, -1)
			continue
		}
		writeString(h, string(param.Value))
	}
	writeNumber(h, len(p.SearchPath))
	for _, s := range p.SearchPath {
		writeString(h, s)
	}
	writeNumber(h, len(p.Settings))
	for _, name := range slices.Sorted(maps.Keys(p.Settings)) {
		writeString(h, name)
		writeString(h, p.Settings[name])
	}
	if p.Claim == nil {
		writeString(h, "no claim")
	} else {
		writeString(h, number(p.Claim.Epsilon)+" "+number(p.Claim.Delta))
		if p.Claim.Curve != "" {
			writeString(h, string(p.Claim.Curve))
		}
	}
	return hexKey(h.Sum(nil))
}

// shape hashes the statement without the parts that a client varies, and the protected tables that it reads.
func (p *Plan) shape(wire []byte) (string, error) {
	sum, err := p.rewriter.schema.shapes.shape(wire)
	if err != nil {
		return "", err
	}
	h := sha256.New()
	h.Write(sum[:])
	for _, t := range p.Tables {
		writeString(h, t.Schema)
		writeString(h, t.Name)
	}
	return hexKey(h.Sum(nil)), nil
}

// Size returns the approximate memory of the plan in bytes, without data shared by all plans of one Rewriter.
func (p *Plan) Size() int {
	const fixed, perEdit, perString = 1 << 10, 96, 32
	n := fixed + len(p.sql) + len(p.Summary) + perEdit*len(p.edits)
	for _, step := range p.steps {
		n += step.Size()
	}
	if p.expected == nil { // a plan reduced to its summary
		return n
	}
	for _, s := range p.expected.segments {
		n += perString + cap(s)
	}
	for _, list := range [][]string{p.Functions, p.SearchPath, p.Assumed, p.Beside} {
		for _, s := range list {
			n += perString + len(s)
		}
	}
	for name, value := range p.Settings {
		n += 2*perString + len(name) + len(value)
	}
	return n
}

// number returns the shortest text that parses to v.
func number(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }

func writeNumber(h hash.Hash, n int) {
	h.Write(binary.BigEndian.AppendUint64(nil, uint64(n))) //nolint:gosec // only to tell values apart
}

func writeString(h hash.Hash, s string) {
	writeNumber(h, len(s))
	h.Write([]byte(s))
}
