package budget

import (
	"context"
	"maps"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/dpwatch/dpwatch/internal/ledger"
	"github.com/dpwatch/dpwatch/replay"
)

// Limits bounds what replays use in any hour; 0 = no limit.
type Limits struct {
	Trials  int     // executions of a query on one of the copies
	Seconds float64 // in which sessions run trials, added over all sessions
}

// Budget keeps replays within Limits. It is the Player's Pace, and passes trials on to another one. It is safe for
// concurrent use; a nil Budget sets no limit.
//
// Each limit is a bucket that is filled continuously and holds a thirtieth of the limit. A session takes its trials
// from it before it runs them, so that no hour, wherever it begins, has more trials than the limit. The time of a trial
// is known only afterwards: what it took beyond its estimate is missing from what follows. So an hour can exceed the
// limit of seconds by the time of the trials in progress.
type Budget struct {
	limits Limits
	next   replay.Pace // nil = none
	now    func() time.Time

	mu       sync.Mutex // guards the fields below
	at       time.Time
	trials   bucket
	seconds  bucket
	active   int     // sessions that run trials
	reserved float64 // estimated seconds of their trials
	used     ledger.Spent
	unsaved  map[time.Time]*ledger.Spent // by hour; see take
}

// bucket holds what may be used now.
type bucket struct{ capacity, rate, level float64 }

// bucketPart is the inverse of the part of an hour's limit that a bucket holds.
const bucketPart = 30

// newBucket returns an empty bucket: what it held at most and what flows in within an hour add up to the limit.
func newBucket(limit float64) bucket {
	c := limit / bucketPart
	return bucket{capacity: c, rate: (limit - c) / 3600}
}

func (b *bucket) limited() bool { return b.capacity > 0 }

// add changes the level by what flowed in or was given back.
func (b *bucket) add(x float64) { b.level = min(b.capacity, b.level+x) }

// wait returns the time until the level is at least x.
func (b *bucket) wait(x float64) time.Duration {
	if !b.limited() || b.level >= x {
		return 0
	}
	return time.Duration(math.Ceil((x - b.level) / b.rate * 1e9))
}

// New returns a Budget with empty buckets, so that processes that follow each other keep the limits together. It
// returns nil without limits. next may be nil.
func New(limits Limits, next replay.Pace, now func() time.Time) *Budget {
	if limits.Trials <= 0 && limits.Seconds <= 0 {
		return nil
	}
	return &Budget{
		limits: limits, next: next, now: now, at: now(), unsaved: map[time.Time]*ledger.Spent{},
		trials: newBucket(float64(max(0, limits.Trials))), seconds: newBucket(max(0, limits.Seconds)),
	}
}

// advance brings the state up to date. Callers hold mu, here and below.
func (b *Budget) advance() {
	now := b.now()
	passed := now.Sub(b.at).Seconds()
	if passed <= 0 { // a clock that was set back gives nothing
		b.at = now
		return
	}
	b.at = now
	b.trials.add(b.trials.rate * passed)
	busy := passed * float64(b.active)
	b.seconds.add(b.seconds.rate*passed - busy)
	b.count(0, busy)
}

func (b *Budget) count(trials int, seconds float64) {
	if trials == 0 && seconds == 0 {
		return
	}
	hour := ledger.Hour(b.at)
	s := b.unsaved[hour]
	if s == nil {
		s = &ledger.Spent{Hour: hour}
		b.unsaved[hour] = s
	}
	for _, s := range []*ledger.Spent{s, &b.used} {
		s.Trials += int64(trials)
		s.Seconds += seconds
	}
}

// unknownTrial is the estimated time of a trial of a query that has not run yet.
const unknownTrial = 100 * time.Millisecond

// admit takes up to n trials of about each seconds from the buckets, and returns how many.
func (b *Budget) admit(n int, each float64) int {
	if b.trials.limited() {
		n = min(n, int(b.trials.level))
	}
	if b.seconds.limited() {
		affordable := (b.seconds.level - b.reserved) / each
		if affordable < 1 && b.active == 0 && b.reserved == 0 && b.seconds.level >= b.seconds.capacity/2 {
			affordable = 1 // one trial takes longer than the bucket holds
		}
		n = min(n, int(affordable))
	}
	if n < 1 {
		return 0
	}
	b.trials.level -= float64(n)
	b.reserved += float64(n) * each
	return n
}

// Enter implements replay.Pace.
func (b *Budget) Enter(ctx context.Context, n int, each time.Duration) (int, error) {
	if each <= 0 {
		n, each = 1, unknownTrial
	}
	for {
		b.mu.Lock()
		b.advance()
		taken := b.admit(n, each.Seconds())
		wait := max(b.trials.wait(1), b.seconds.wait(b.reserved+each.Seconds()))
		b.mu.Unlock()
		if taken > 0 {
			return b.pass(ctx, taken, each)
		}
		timer := time.NewTimer(min(max(wait, time.Millisecond), time.Second)) // sessions that leave give estimates back
		select {
		case <-ctx.Done():
			timer.Stop()
			return 0, ctx.Err()
		case <-timer.C:
		}
	}
}

// pass passes taken trials on to the next Pace, and gives back what it does not admit.
func (b *Budget) pass(ctx context.Context, taken int, each time.Duration) (n int, err error) {
	n = taken
	if b.next != nil {
		n, err = b.next.Enter(ctx, taken, each)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.advance()
	if err != nil {
		n = 0
	}
	b.trials.add(float64(taken - n))
	b.reserved -= float64(taken-n) * each.Seconds()
	if err != nil {
		return 0, err
	}
	b.count(n, 0)
	b.active++
	return n, nil
}

// Leave implements replay.Pace.
func (b *Budget) Leave() {
	b.mu.Lock()
	b.advance()
	b.reserved -= b.reserved / float64(b.active)
	if b.active--; b.active == 0 {
		b.reserved = max(0, b.reserved)
	}
	b.mu.Unlock()
	if b.next != nil {
		b.next.Leave()
	}
}

// Use returns the limits, and what was used since the Budget was made.
func (b *Budget) Use() (Limits, ledger.Spent) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.advance()
	return b.limits, b.used
}

// Wait returns how long until a turn may begin, 0 for now: when the buckets are half full.
func (b *Budget) Wait() time.Duration {
	if b == nil {
		return 0
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.advance()
	return max(b.trials.wait(b.trials.capacity/2), b.seconds.wait(b.seconds.capacity/2))
}

// Spent reports whether a turn must end.
func (b *Budget) Spent() bool {
	if b == nil {
		return false
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.advance()
	return b.trials.limited() && b.trials.level < 1 || b.seconds.limited() && b.seconds.level <= 0
}

// Fill fills the buckets: nothing was used in the last hour.
func (b *Budget) Fill() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.trials.level, b.seconds.level = b.trials.capacity, b.seconds.capacity
}

// Take returns what was used since the last call, by hour, earliest first.
func (b *Budget) Take() []ledger.Spent {
	if b == nil {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	var all []ledger.Spent
	for _, hour := range slices.SortedFunc(maps.Keys(b.unsaved), time.Time.Compare) {
		all = append(all, *b.unsaved[hour])
	}
	clear(b.unsaved)
	return all
}

// GiveBack undoes take after a failed write.
func (b *Budget) GiveBack(all []ledger.Spent) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, s := range all {
		if o := b.unsaved[s.Hour]; o != nil {
			s.Trials += o.Trials
			s.Seconds += o.Seconds
		}
		b.unsaved[s.Hour] = &s
	}
}

// Charge takes what the trials of another process used from the buckets; until that has flowed in again, turns wait.
func (b *Budget) Charge(trials int, seconds float64) {
	if b == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.advance()
	trials = max(0, trials)
	b.trials.level -= float64(trials)
	b.seconds.level -= seconds
	b.count(trials, seconds)
}
