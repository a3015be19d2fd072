package supervise

import (
	"sync"
	"time"

	"github.com/prometheus/procfs"
)

// parseCheck is the interval at which watch checks for statements that take too long to parse.
const parseCheck = 250 * time.Millisecond

// parsing holds the statements that the child is parsing, those between Begin and End. Its workers can have several.
type parsing struct {
	mu    sync.Mutex
	since map[[32]byte]*parse // guarded by mu
}

// parse is one statement that is being parsed.
type parse struct {
	began int64         // child.now at Begin
	seen  bool          // spent has seen it
	cpu   time.Duration // CPU time of the child when spent first saw it
}

func (p *parsing) begin(payload []byte, now int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.since == nil {
		p.since = map[[32]byte]*parse{}
	}
	p.since[hashOf(payload)] = &parse{began: now}
}

func (p *parsing) end(payload []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.since, hashOf(payload))
}

// all returns the hashes of the statements that are being parsed.
func (p *parsing) all() (hashes [][32]byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for hash := range p.since {
		hashes = append(hashes, hash)
	}
	return hashes
}

// longest returns for how many of watch's seconds the oldest statement has been parsed, 0 without any.
func (p *parsing) longest(now int64) (seconds int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, s := range p.since {
		seconds = max(seconds, now-s.began)
	}
	return seconds
}

// spent returns the CPU time of the child since the first call that saw the oldest statement, 0 without statements or
// if the system does not report CPU times. It never exceeds the statement's own time, and misses the time before the
// first call. cpu returns the child's CPU time.
func (p *parsing) spent(cpu func() (time.Duration, bool)) (longest time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.since) == 0 {
		return 0
	}
	now, ok := cpu()
	if !ok {
		return 0
	}
	for _, s := range p.since {
		if !s.seen {
			s.seen, s.cpu = true, now
		}
		longest = max(longest, now-s.cpu)
	}
	return longest
}

func hashOf(payload []byte) (hash [32]byte) {
	copy(hash[:], payload)
	return hash
}

// cpuTime returns the CPU time of a process from /proc; false if unavailable.
func cpuTime(pid int) (time.Duration, bool) {
	process, err := procfs.NewProc(pid)
	if err != nil {
		return 0, false
	}
	stat, err := process.Stat()
	return time.Duration(stat.CPUTime() * float64(time.Second)), err == nil
}
