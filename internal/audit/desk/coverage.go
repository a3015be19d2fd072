package desk

import (
	"encoding/binary"
	"encoding/hex"
	"slices"
)

// coverageSample is the number of distinct queries that coverage stores. Up to it figures are exact; beyond it the
// share of audited queries has a standard error of at most 1.6 %, and the number of queries one of 3 %.
const coverageSample = 1024

// coverage estimates the number of distinct DP queries and the share of them that are audited, in bounded memory: it
// stores the queries with the smallest hashes (Bar-Yossef et al. 2002, k minimum values), which are a uniform sample of
// all.
type coverage struct {
	hashes  []uint64 // ascending
	audited map[uint64]bool
	beyond  bool // a query did not fit
}

// see records a query and whether it has an audit.
func (c *coverage) see(key string, audited bool) {
	h := keyHash(key)
	i, known := slices.BinarySearch(c.hashes, h)
	switch {
	case known:
	case i >= coverageSample:
		c.beyond = true
		return
	default:
		if len(c.hashes) == coverageSample {
			last := c.hashes[coverageSample-1]
			delete(c.audited, last)
			c.hashes, c.beyond = c.hashes[:coverageSample-1], true
		}
		c.hashes = slices.Insert(c.hashes, i, h)
	}
	c.mark(h, audited)
}

// lose records that a query lost its audit before it was decided.
func (c *coverage) lose(key string) { c.mark(keyHash(key), false) }

func (c *coverage) mark(h uint64, audited bool) {
	if !audited {
		delete(c.audited, h)
		return
	}
	if c.audited == nil {
		c.audited = map[uint64]bool{}
	}
	c.audited[h] = true
}

// queries returns the number of distinct queries, and the share that are audited; nil without any. untried is how many
// of those that have an audit and are stored here have had no trial.
func (c *coverage) queries(untried int) (n float64, share *float64) {
	if len(c.hashes) == 0 {
		return 0, nil
	}
	n = float64(len(c.hashes))
	if c.beyond {
		n = (coverageSample - 1) / (float64(c.hashes[len(c.hashes)-1]) / (1 << 64))
	}
	audited := float64(len(c.audited)-untried) / float64(len(c.hashes))
	return n, &audited
}

// covered returns the number of distinct queries, and the share that are audited: their audit has or had trials. An
// audit that began again counts, as the trials before it do.
func (k *counts) covered() (n float64, share *float64) {
	untried := 0
	for _, j := range k.order {
		if j.Trials == 0 && j.restarts+j.repeats == 0 && k.coverage.audited[j.hash] {
			untried++
		}
	}
	return k.coverage.queries(untried)
}

// keyHash returns a hash of an audit's key, which is itself a hash in hexadecimal.
func keyHash(key string) uint64 {
	var b [8]byte
	_, _ = hex.Decode(b[:], []byte(key[:min(16, len(key))]))
	return binary.BigEndian.Uint64(b[:])
}
