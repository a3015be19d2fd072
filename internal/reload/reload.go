// Package reload holds a value that is made from files (a certificate and its key, a token) and reloads it when the
// files are replaced.
package reload

import (
	"crypto/sha256"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"
)

// settled is the minimum age of a file at which its modification time reliably shows later writes.
const settled = 2 * time.Second

// Files is a value that is made from files and reloaded when they are replaced: by a rename, a rewrite, or the swap of
// a symbolic link in their path. If they cannot be read or parsed, the last good value stays. It is safe for concurrent
// use.
type Files[T any] struct {
	what  string // for logs and errors
	paths []string
	parse func(contents [][]byte) (T, error)
	log   *zap.Logger

	mu       sync.Mutex // guards the fields below
	value    T
	previous T // the value before the last reload, or the zero T
	infos    []os.FileInfo
	young    bool // the files were so new that a change might not show in their modification times
	sum      [sha256.Size]byte
	fault    string // the error of the last reload, "" for none
	reloads  uint64
	failures uint64
}

// Load reads the files for the first time. what names them in logs and errors; parse receives their contents in order.
func Load[T any](what string, paths []string, log *zap.Logger, parse func([][]byte) (T, error)) (*Files[T], error) {
	f := &Files[T]{what: what, paths: paths, parse: parse, log: log}
	if err := f.read(); err != nil {
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	f.reloads = 0
	return f, nil
}

// Get returns the current value, reloaded if the files have changed, and the previous one.
func (f *Files[T]) Get() (value, previous T) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.refresh()
	return f.value, f.previous
}

// Counts returns the numbers of successful and of failed reloads.
func (f *Files[T]) Counts() (reloads, failures uint64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.reloads, f.failures
}

// refresh reloads the files if they have changed. The caller holds mu.
func (f *Files[T]) refresh() {
	if infos, err := statAll(f.paths); err == nil && !f.young && slices.EqualFunc(infos, f.infos, same) {
		return
	}
	err := f.read()
	switch {
	case err == nil:
		f.fault = ""
	case err.Error() != f.fault:
		f.fault = err.Error()
		f.failures++
		f.log.Error("the new files cannot be used; the last good ones stay in use",
			zap.String("what", f.what), zap.Error(err))
	}
}

// read reads the files and parses them if their contents have changed.
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

func same(a, b os.FileInfo) bool {
	return os.SameFile(a, b) && a.ModTime().Equal(b.ModTime()) && a.Size() == b.Size()
}

func youngest(infos []os.FileInfo) time.Duration {
	age := settled
	for _, info := range infos {
		age = min(age, time.Since(info.ModTime()))
	}
	return age
}
