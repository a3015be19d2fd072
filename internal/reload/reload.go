// Package reload keeps a value that is made from files (a certificate and its key, a token) and makes it anew when they
// are replaced.
package reload

import (
	"crypto/sha256"
	"fmt"
	"os"
	"sync"
	"time"

	"go.uber.org/zap"
)

// settled is how old a file must be for its time of modification to tell whether it was written again since.
const settled = 2 * time.Second

// Files is a value that is made from files and made anew when they are replaced, by a rename, a rewrite, or
// the swap of a symbolic link above them. What cannot be read or parsed changes nothing: the last good value
// stays. It is safe for use by several goroutines.
type Files[T any] struct {
	what  string // for the log
	paths []string
	parse func(contents [][]byte) (T, error)
	log   *zap.Logger

	mu       sync.Mutex // guards what follows
	value    T
	previous T // what value was before it was last replaced, or the zero T
	infos    []os.FileInfo
	young    bool // the files were so new that a change might not show in their times
	sum      [sha256.Size]byte
	fault    string // what was wrong when they were last read, "" for nothing
	reloads  uint64
	failures uint64
}

// Load reads the files for the first time. what names them in the log and in errors; parse gets their contents in order.
func Load[T any](what string, paths []string, log *zap.Logger, parse func([][]byte) (T, error)) (*Files[T], error) {
	f := &Files[T]{what: what, paths: paths, parse: parse, log: log}
	if err := f.read(); err != nil {
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	f.reloads = 0
	return f, nil
}

// Get returns the value that the files hold now, and the one before.
func (f *Files[T]) Get() (value, previous T) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.refresh()
	return f.value, f.previous
}

// Counts returns how often the files were replaced by good ones and by bad ones.
func (f *Files[T]) Counts() (reloads, failures uint64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.reloads, f.failures
}

// refresh reads the files again if they look different. The caller holds mu.
func (f *Files[T]) refresh() {
	if infos, err := statAll(f.paths); err == nil && !f.young && same(infos, f.infos) {
		return
	}
	err := f.read()
	switch {
	case err == nil:
		f.fault = ""
	case err.Error() != f.fault:
		f.fault = err.Error()
		f.failures++
		f.log.Error("files were replaced by something that cannot be used; the last good ones stay in use",
			zap.String("what", f.what), zap.Error(err))
	}
}

// read reads the files and, if their contents are new, parses them.
func (f *Files[T]) read() error {
	infos, err := statAll(f.paths)
	if err != nil {
		return err
	}
	contents := make([][]byte, len(f.paths))
	hash := sha256.New()
	for i, path := range f.paths {
		if contents[i], err = os.ReadFile(path); err != nil {
			return err
		}
		one := sha256.Sum256(contents[i])
		hash.Write(one[:])
	}
	f.infos, f.young = infos, youngest(infos) < settled
	sum := [sha256.Size]byte(hash.Sum(nil))
	if sum == f.sum {
		return nil
	}
	value, err := f.parse(contents)
	if err != nil {
		return err
	}
	f.previous, f.value, f.sum = f.value, value, sum
	f.reloads++
	return nil
}

func statAll(paths []string) ([]os.FileInfo, error) {
	infos := make([]os.FileInfo, len(paths))
	for i, path := range paths {
		var err error
		if infos[i], err = os.Stat(path); err != nil {
			return nil, err
		}
	}
	return infos, nil
}

func same(a, b []os.FileInfo) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if !os.SameFile(a[i], b[i]) || !a[i].ModTime().Equal(b[i].ModTime()) || a[i].Size() != b[i].Size() {
			return false
		}
	}
	return true
}

func youngest(infos []os.FileInfo) time.Duration {
	age := settled
	for _, info := range infos {
		age = min(age, time.Since(info.ModTime()))
	}
	return age
}
