package supervise

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"sync"
	"time"
)

// parseCheck is how often the watch looks whether a statement is parsed for too long.
const parseCheck = 250 * time.Millisecond

// parsing is what the child parses now: the statements between Begin and End, of which its workers may have several.
type parsing struct {
	mu    sync.Mutex
	since map[[32]byte]*parse // guarded by mu
}

// parse is one statement that is being parsed.
type parse struct {
	began int64         // child.now at Begin
	seen  bool          // by spent
	cpu   time.Duration // of the child when spent first saw it
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

// all returns the hashes of what is being parsed.
func (p *parsing) all() (hashes [][32]byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for hash := range p.since {
		hashes = append(hashes, hash)
	}
	return hashes
}

// longest returns for how many seconds of the watch the first of the statements has been parsed, 0 without any.
func (p *parsing) longest(now int64) (seconds int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, s := range p.since {
		seconds = max(seconds, now-s.began)
	}
	return seconds
}

// spent returns how much of the processor's time the child has spent since the first of the statements was seen here, 0
// without any, or where the system does not say: at most what the statement took, and less by what came before the first
// call. cpu returns the child's time.
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

// clockTick is the unit of the times in /proc: USER_HZ is 100 on every architecture that Go runs on.
const clockTick = 10 * time.Millisecond

// cpuTime returns the processor's time that a process has spent, by /proc (proc(5)); false where there is none.
func cpuTime(pid int) (time.Duration, bool) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, false
	}
	// The name of the program, in parentheses, may hold anything.
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	const utime, stime = 11, 12 // fields 14 and 15, of which two stand before the parenthesis and in it
	if len(fields) <= stime {
		return 0, false
	}
	user, err1 := strconv.ParseInt(string(fields[utime]), 10, 64)
	system, err2 := strconv.ParseInt(string(fields[stime]), 10, 64)
	return time.Duration(user+system) * clockTick, err1 == nil && err2 == nil
}
