package ledger

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Spool keeps on disk, in order and within a bound, what cannot be written while the ledger is away. A file is sealed,
// and written under another name and renamed, so that a crash leaves whole files only. A directory belongs to one
// process at a time. A Spool is safe for concurrent use.
type Spool struct {
	dir      string
	limit    int64 // bytes of all files together
	withhold bool  // captured queries are not stored
	lock     *os.File

	mu       sync.Mutex // guards the fields below
	files    []spoolFile
	size     int64
	attempts *os.File // see Attempt; nil = not open yet
	latest   attempt
}

type spoolFile struct {
	name string
	size int64
}

// SpoolKind is the kind of a spooled file.
type SpoolKind string

// The kinds of spooled files.
const (
	SpooledBatch   SpoolKind = "batch"   // a Batch
	SpooledQueries SpoolKind = "queries" // captured queries, in a form of the caller
)

// Errors of a Spool.
var (
	// ErrSpoolFull: a file would exceed the bound.
	ErrSpoolFull = errors.New("the spool is full")
	// ErrSpoolInUse: another process uses the directory.
	ErrSpoolInUse = errors.New("another process uses this directory: give each engine its own ledger.spool.dir")
	// ErrSpoolReadable: others may read the directory, or it belongs to another user.
	ErrSpoolReadable = errors.New("others may read this directory, and statements hold literals: run chmod 700 on it")
)

// OpenSpool opens the spool in a directory, which it creates for its owner alone. With withhold, captured queries are
// not stored.
func OpenSpool(dir string, limit int64, withhold bool) (*Spool, error) {
	s, err := openSpool(dir, limit)
	if err != nil {
		return nil, fmt.Errorf("spool: %s: %w", dir, err)
	}
	s.withhold = withhold
	return s, nil
}

func openSpool(dir string, limit int64) (*Spool, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	switch info, err := os.Stat(dir); {
	case err != nil:
		return nil, err
	case info.Mode().Perm()&0o077 != 0 || !ownedByUs(info):
		return nil, ErrSpoolReadable
	}
	lock, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil { //nolint:gosec // a file descriptor
		_ = lock.Close()
		return nil, ErrSpoolInUse
	}
	s := &Spool{dir: dir, limit: limit, lock: lock}
	entries, err := os.ReadDir(dir) // sorted by name, and so in order
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), unfinished) { // the process ended while it wrote
			_ = os.Remove(filepath.Join(dir, e.Name()))
		}
		info, statErr := e.Info()
		if statErr != nil || !kindOf(e.Name()).known() {
			continue
		}
		s.files = append(s.files, spoolFile{e.Name(), info.Size()})
		s.size += info.Size()
	}
	if err != nil {
		_ = s.Close()
		return nil, err
	}
	return s, nil
}

// unfinished is the suffix of a file that is being written.
const unfinished = ".new"

// ownedByUs reports whether a file belongs to the user of this process.
func ownedByUs(info fs.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return !ok || int(stat.Uid) == os.Geteuid()
}

func kindOf(name string) SpoolKind { return SpoolKind(strings.TrimPrefix(filepath.Ext(name), ".")) }

func (k SpoolKind) known() bool { return k == SpooledBatch || k == SpooledQueries }

// Withholds reports whether captured queries are not stored.
func (s *Spool) Withholds() bool { return s.withhold }

// Len returns the number of files and of their bytes.
func (s *Spool) Len() (files int, bytes int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.files), s.size
}

// Put adds a file behind the others. It returns ErrSpoolFull if the bound does not allow it. Captured queries leave an
// eighth of the space to batches, which have the counts of what does not fit.
func (s *Spool) Put(kind SpoolKind, content []byte) error {
	return s.put(kind, content, kind == SpooledQueries)
}

// put adds a file. statements means that the content holds captured queries.
func (s *Spool) put(kind SpoolKind, content []byte, statements bool) error {
	if statements && s.withhold {
		return fmt.Errorf("spool: %w", ErrWithheld)
	}
	data := Seal(content)
	s.mu.Lock()
	defer s.mu.Unlock()
	limit := s.limit
	if kind == SpooledQueries {
		limit -= limit / 8
	}
	if s.size+int64(len(data)) > limit {
		return ErrSpoolFull
	}
	name := fmt.Sprintf("%020d-%s.%s", time.Now().UnixNano(), strings.ToLower(rand.Text()[:8]), kind)
	if last := len(s.files) - 1; last >= 0 && name <= s.files[last].name { // the clock was set back
		name = strings.TrimSuffix(s.files[last].name, filepath.Ext(s.files[last].name)) + "0." + string(kind)
	}
	path := filepath.Join(s.dir, name)
	err := os.WriteFile(path+unfinished, data, 0o600)
	if err == nil {
		err = os.Rename(path+unfinished, path)
	}
	if err != nil {
		_ = os.Remove(path + ".new")
		return fmt.Errorf("spool: %w", err)
	}
	s.files = append(s.files, spoolFile{name, int64(len(data))})
	s.size += int64(len(data))
	return nil
}

// PutBatch adds a batch. Statements are not stored if they are withheld.
func (s *Spool) PutBatch(b Batch) error {
	statements := b.Statements > 0
	if s.withhold {
		b.Placed = slices.Clone(b.Placed)
	}
	for i := range b.Placed {
		if s.withhold {
			b.Placed[i].Statement = nil
		}
		statements = statements || b.Placed[i].Statement != nil
	}
	content, err := json.Marshal(b)
	if err != nil {
		return fmt.Errorf("spool: %w", err)
	}
	return s.put(SpooledBatch, content, statements)
}

// First returns the first file of a kind and its name, "" if there is none. A file that cannot be read is renamed, and
// reported as an error.
func (s *Spool) First(kind SpoolKind) (name string, content []byte, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.IndexFunc(s.files, func(f spoolFile) bool { return kindOf(f.name) == kind })
	if i < 0 {
		return "", nil, nil
	}
	name = s.files[i].name
	data, err := os.ReadFile(filepath.Join(s.dir, name))
	if err == nil {
		content, err = Unseal(data)
	}
	if err != nil {
		return "", nil, fmt.Errorf("spool: file %s is set aside as %s.damaged: %w", name, name, s.setAside(i, err))
	}
	return name, content, nil
}

// FirstBatch returns the first batch and the name of its file, "" if there is none; see First.
func (s *Spool) FirstBatch() (name string, b Batch, err error) {
	name, content, err := s.First(SpooledBatch)
	if err != nil || name == "" {
		return "", b, err
	}
	if err := json.Unmarshal(content, &b); err != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		i := slices.IndexFunc(s.files, func(f spoolFile) bool { return f.name == name })
		return "", b, fmt.Errorf("spool: file %s is set aside as %s.damaged: %w", name, name, s.setAside(i, errors.New("it is not a batch")))
	}
	return name, b, nil
}

// setAside renames a file so that it is not read again, and returns why. The caller holds s.mu.
func (s *Spool) setAside(i int, why error) error {
	path := filepath.Join(s.dir, s.files[i].name)
	s.forget(i)
	if err := os.Rename(path, path+".damaged"); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return errors.Join(why, err)
	}
	return why
}

func (s *Spool) forget(i int) {
	s.size -= s.files[i].size
	s.files = slices.Delete(s.files, i, i+1)
}

// Remove removes a file, after its content was written to the ledger.
func (s *Spool) Remove(name string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if i := slices.IndexFunc(s.files, func(f spoolFile) bool { return f.name == name }); i >= 0 {
		s.forget(i)
	}
	if err := os.Remove(filepath.Join(s.dir, name)); err != nil {
		return fmt.Errorf("spool: %w", err)
	}
	return nil
}

// Close releases the directory.
func (s *Spool) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.attempts != nil {
		_ = s.attempts.Close()
	}
	_ = syscall.Flock(int(s.lock.Fd()), syscall.LOCK_UN) //nolint:gosec // a child process that was just forked may still have the file
	return s.lock.Close()
}
