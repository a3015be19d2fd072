package environment

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/dpwatch/dpwatch/rewrite"
)

// renewPause is the shortest time between two readings for unknown names: clients that use names that do not exist must
// not make the auditor read catalogs continuously. It is longer if a reading takes longer.
const renewPause = 2 * time.Second

// UnreadCatalogs is the error of a turn that waits until the catalogs are read again.
type UnreadCatalogs struct{ error }

func (e *UnreadCatalogs) Unwrap() error { return e.error }

// Catalogs reads the catalogs with which statements are analysed again and again. Its exported fields are set before
// Run.
type Catalogs struct {
	// Renew returns a Rewriter for the present catalogs, or nil and why there is none; nil = they never change. See
	// audit.Options.
	Renew func(context.Context) (*rewrite.Rewriter, error)
	Every time.Duration
	Use   func(*rewrite.Rewriter) (changed bool) // takes a Rewriter
	// Before is called before each reading, Failed with the error of one, and Adopted after all were read.
	Before  func(context.Context)
	Failed  func(error)
	Adopted func(changed bool)

	informed chan struct{} // closed after the first reading, or if Renew is nil
	once     sync.Once
	stale    chan struct{} // requests a reading; capacity 1

	mu       sync.Mutex // guards the fields below
	trouble  error      // why one could not be read the last time; nil = all were read
	troubles int        // readings in which one could not be read
	read     time.Time  // when the last reading of all began; zero = there was none
	tried    time.Time  // when the last reading began, successful or not
	needed   time.Time  // when the engine was read that is not the one before: older catalogs may lack what a replay would call
}

// NewCatalogs returns Catalogs.
func NewCatalogs(renew func(context.Context) (*rewrite.Rewriter, error), every time.Duration) *Catalogs {
	c := &Catalogs{Renew: renew, Every: every, informed: make(chan struct{}), stale: make(chan struct{}, 1)}
	if renew == nil {
		c.inform()
	}
	return c
}

// Informed is closed after the first reading, successful or not.
func (c *Catalogs) Informed() <-chan struct{} { return c.informed }

func (c *Catalogs) inform() { c.once.Do(func() { close(c.informed) }) }

// Ask requests a reading before it is due.
func (c *Catalogs) Ask() {
	select {
	case c.stale <- struct{}{}:
	default:
	}
}

// Run reads the catalogs until ctx is done.
func (c *Catalogs) Run(ctx context.Context) {
	defer c.inform()
	for first := true; ctx.Err() == nil; first = false {
		c.Before(ctx)
		began := time.Now()
		r, err := c.Renew(ctx)
		if ctx.Err() != nil {
			return
		}
		if err != nil { // known before a Rewriter without that catalog is used
			c.mu.Lock()
			c.trouble, c.troubles = err, c.troubles+1
			c.mu.Unlock()
		}
		changed := r != nil && c.Use(r)
		if err == nil {
			c.mu.Lock()
			c.trouble, c.read = nil, began
			c.mu.Unlock()
		}
		c.mu.Lock()
		c.tried = began
		c.mu.Unlock()
		if c.Failed(err); err == nil {
			c.Adopted(changed)
		}
		c.inform()
		least := min(max(renewPause, time.Since(began)), c.Every)
		if first { // the first trials wait for the second reading
			least = 0
		}
		c.pause(ctx, least)
	}
}

// pause waits until the next reading is due, or requested after the least time.
func (c *Catalogs) pause(ctx context.Context, least time.Duration) {
	due := time.NewTimer(c.Every)
	defer due.Stop()
	select {
	case <-ctx.Done():
		return
	case <-due.C:
		return
	case <-time.After(least):
	}
	select {
	case <-ctx.Done():
	case <-due.C:
	case <-c.stale:
	}
}

// Need notes that catalogs which were read earlier may lack what a replay would call.
func (c *Catalogs) Need(since time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if since.After(c.needed) {
		c.needed = since
	}
}

// Recent returns an *UnreadCatalogs, and requests a reading, if the catalogs are too old for the trials of a query. The
// catalogs must have been read after the query was captured if it has names that no catalog has.
func (c *Catalogs) Recent(unknownNames bool, captured time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	needed := c.needed
	if unknownNames && captured.After(needed) {
		needed = captured
	}
	if c.Renew == nil || c.read.IsZero() || c.read.After(needed) {
		return nil
	}
	c.Ask()
	text := "the catalogs are read again first: functions may be newer than they are"
	if c.trouble != nil {
		return &UnreadCatalogs{&causedBy{text, c.trouble}}
	}
	return &UnreadCatalogs{errors.New(text)}
}

// Awaited reports whether a reading that began after a time has ended, successfully or not, or there are none. Otherwise
// it requests one.
func (c *Catalogs) Awaited(since time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.Renew == nil || c.tried.After(since) {
		return true
	}
	c.Ask()
	return false
}

// Troubled returns a function that reports whether a Rewriter which was used since the call may lack a catalog, because
// it could not be read.
func (c *Catalogs) Troubled() func() bool {
	troubles := func() (all int, last error) {
		c.mu.Lock()
		defer c.mu.Unlock()
		return c.troubles, c.trouble
	}
	before, last := troubles()
	return func() bool {
		now, _ := troubles()
		return last != nil || now > before
	}
}

// causedBy is an error with another one as its cause, of which a reader may see less.
type causedBy struct {
	text  string
	cause error
}

func (e *causedBy) Error() string { return e.text + " (" + e.cause.Error() + ")" }
func (e *causedBy) Unwrap() error { return e.cause }
