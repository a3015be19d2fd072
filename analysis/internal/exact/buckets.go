package exact

import (
	"math"
	mathbits "math/bits"
)

// This file reads a value anywhere: whether any value of some hash is among the rows of a result, or a word in its texts.

const bucketCount = 1 << 12

// presence is which buckets a result has a value in.
type presence [bucketCount / 64]uint64

func (p *presence) set(hash uint64) { p[hash>>6%uint64(len(p))] |= 1 << (hash & 63) }

func (p *presence) has(b int) bool { return p[b/64]>>(b%64)&1 == 1 }

// buckets count in how many results of each world a bucket was filled.
type buckets struct {
	pairs  int
	next   int // pairs at which the best are chosen again
	counts [2][]uint16
	leads  []lead
	gain   float32
}

// lead is a bucket that counts, with the log-odds of its presence and of its absence.
type lead struct {
	bucket          int
	present, absent float64
}

func (v *buckets) count(world int, p *presence) {
	for i, bits := range p {
		if bits == 0 {
			continue
		}
		if v.counts[0] == nil {
			v.counts = [2][]uint16{make([]uint16, bucketCount), make([]uint16, bucketCount)}
		}
		for ; bits != 0; bits &= bits - 1 {
			v.counts[world][64*i+mathbits.TrailingZeros64(bits)]++
		}
	}
}

func (v *buckets) score(p *presence) (x float64) {
	for _, l := range v.leads {
		if p.has(l.bucket) {
			x += l.present
		} else {
			x += l.absent
		}
	}
	return x
}

// choose chooses the best buckets, now and whenever pairs have grown by an eighth.
func (v *buckets) choose() {
	if v.counts[0] == nil || v.pairs < v.next {
		return
	}
	v.next = v.pairs + max(8, v.pairs/8)
	if v.pairs > maxBucketPairs {
		v.halve()
	}
	n := float64(v.pairs) + 1
	gainOf := func(b int) float64 {
		p, q := (float64(v.counts[0][b])+.5)/n, (float64(v.counts[1][b])+.5)/n
		m := (p + q) / 2
		return n * (p*math.Log(p/m) + q*math.Log(q/m) + (1-p)*math.Log((1-p)/(1-m)) + (1-q)*math.Log((1-q)/(1-m)))
	}
	var top [most]int
	var gains [most]float64
	k := 0
	for b := range bucketCount {
		both, d := int(v.counts[0][b])+int(v.counts[1][b]), int(v.counts[0][b])-int(v.counts[1][b])
		if d*d < leastBucket*min(both, 2*v.pairs-both) { // too little, without a logarithm
			continue
		}
		g := gainOf(b)
		if g < leastBucket || k == most && g <= gains[k-1] {
			continue
		}
		at := min(k, most-1)
		for ; at > 0 && gains[at-1] < g; at-- {
			top[at], gains[at] = top[at-1], gains[at-1]
		}
		top[at], gains[at] = b, g
		k = min(k+1, most)
	}
	v.leads, v.gain = v.leads[:0], 0
	for i := range k {
		if gains[i] <= gains[0]/2 {
			continue
		}
		p, q := (float64(v.counts[0][top[i]])+.5)/n, (float64(v.counts[1][top[i]])+.5)/n
		limit := func(x float64) float64 { return min(max(x, -oddsLimit), oddsLimit) }
		v.leads = append(v.leads, lead{top[i], limit(math.Log(p / q)), limit(math.Log((1 - p) / (1 - q)))})
		v.gain = float32(gains[0] / 2)
	}
}

const (
	leastBucket    = 6 // nats: there are many buckets
	maxBucketPairs = 1 << 14
)

func (v *buckets) halve() {
	for w := range v.counts {
		for b := range v.counts[w] {
			v.counts[w][b] /= 2
		}
	}
	v.pairs /= 2
	v.next = v.pairs + max(8, v.pairs/8)
}

func (v *buckets) size() int { return 2 * (cap(v.counts[0]) + cap(v.counts[1])) }
