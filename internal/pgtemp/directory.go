package pgtemp

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const (
	dirPrefix = "dpwatch-pg-"
	// maxSocketPath is the smallest limit on the length of a socket path, macOS's (104 with the final zero).
	maxSocketPath = 103
	// longestTail is the longest path below the temporary directory.
	longestTail = "/" + dirPrefix + "4294967295/s/.s.PGSQL.65535"
)

// directory is the private directory of one cluster. It belongs to the caller. Its content belongs to the account that
// runs the server, except lock and postmaster, on which sweep relies.
//
//	lock        locked (flock) while the parent lives
//	postmaster  the server's process id
//	data/       the data directory
//	s/          the socket
type directory struct {
	path string
	lock *os.File
}

func (d *directory) data() string    { return filepath.Join(d.path, "data") }
func (d *directory) sockets() string { return filepath.Join(d.path, "s") }

// makeDirectory creates the directory for the account.
func makeDirectory(o Options, a account) (*directory, error) {
	base, err := tempBase(o, a)
	if err != nil {
		return nil, err
	}
	sweep(base)
	path, err := os.MkdirTemp(base, dirPrefix)
	if err != nil {
		return nil, &StartError{Step: "directory", Err: err, Hint: "set TMPDIR to a directory that can be written to"}
	}
	d := &directory{path: path}
	if err := d.fill(a); err != nil {
		d.remove()
		return nil, &StartError{Step: "directory", Err: err, Hint: hintFor(errnoText(err))}
	}
	return d, nil
}

// errnoText returns the server's text for a system error.
func errnoText(err error) string {
	switch {
	case errors.Is(err, syscall.ENOSPC):
		return "No space left on device"
	case errors.Is(err, syscall.EDQUOT):
		return "Disk quota exceeded"
	}
	return ""
}

func (d *directory) fill(a account) error {
	// The file is locked before it gets its final name, so that a sweep never finds it unlocked, however slow this
	// process is.
	name := filepath.Join(d.path, "lock")
	lock, err := os.OpenFile(name+".new", os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	d.lock = lock
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return fmt.Errorf("lock %s: %w", name, err)
	}
	if err := os.Rename(name+".new", name); err != nil {
		return err
	}
	for _, sub := range []string{d.data(), d.sockets()} {
		if err := errors.Join(os.Mkdir(sub, 0o700), a.own(sub)); err != nil {
			return err
		}
	}
	if a.drop { // the account can traverse the directory, nothing else
		return errors.Join(os.Chown(d.path, -1, a.gid), os.Chmod(d.path, 0o710))
	}
	return nil
}

// record stores the server's process id for sweep.
func (d *directory) record(pid int) error {
	return os.WriteFile(filepath.Join(d.path, "postmaster"), []byte(strconv.Itoa(pid)), 0o600)
}

// remove deletes the directory. Terminating server processes can still create files, so it retries for ten seconds.
func (d *directory) remove() error {
	var err error
	for range 200 {
		if err = os.RemoveAll(d.path); err == nil {
			break
		}
		time.Sleep(50 * time.Millisecond)
	}
	if d.lock != nil {
		_ = d.lock.Close()
		d.lock = nil
	}
	return err
}

// tempBase returns TMPDIR. It returns /tmp if a socket path would be too long or the server's account could not enter
// TMPDIR.
func tempBase(o Options, a account) (string, error) {
	base := o.getenv("TMPDIR")
	if base == "" {
		return "/tmp", nil
	}
	base, err := filepath.Abs(base)
	if err != nil {
		return "", &StartError{Step: "directory", Err: err}
	}
	info, err := os.Stat(base)
	if err == nil && !info.IsDir() {
		err = &os.PathError{Op: "stat", Path: base, Err: syscall.ENOTDIR}
	}
	if err != nil {
		return "", &StartError{Step: "directory", Err: err, Hint: "TMPDIR must name a directory that exists"}
	}
	if len(base)+len(longestTail) > maxSocketPath || a.drop && !open(base) {
		return "/tmp", nil
	}
	return base, nil
}

// open reports whether all users can traverse the directory and its parents.
func open(dir string) bool {
	for {
		info, err := os.Stat(dir)
		if err != nil || info.Mode()&0o001 == 0 {
			return false
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return true
		}
		dir = parent
	}
}

// sweep removes the directories of clusters whose parent and watchdog were both killed. It touches only unlocked
// directories of the caller. It ignores errors, because the next Start sweeps again.
func sweep(base string) {
	paths, err := filepath.Glob(filepath.Join(base, dirPrefix+"*"))
	if err != nil {
		return
	}
	for _, path := range paths {
		if ownStale(path) && stopped(path) {
			_ = (&directory{path: path}).remove()
		}
	}
}

// ownStale reports whether the path is a directory of the caller whose parent process has ended.
func ownStale(path string) bool {
	info, err := os.Lstat(path)
	if err != nil || !info.IsDir() {
		return false
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok || int(stat.Uid) != os.Geteuid() {
		return false
	}
	lock, err := os.OpenFile(filepath.Join(path, "lock"), os.O_RDWR|syscall.O_NOFOLLOW, 0)
	if err != nil {
		// A directory without a lock is either being created or was never completed.
		return errors.Is(err, os.ErrNotExist) && time.Since(info.ModTime()) > time.Minute
	}
	defer lock.Close()
	return syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil
}

// stopped reports whether no server runs in the stale directory; it stops a running one. That server must answer on the
// directory's socket, so that a process that merely reuses the pid is never signalled.
func stopped(path string) bool {
	text, err := os.ReadFile(filepath.Join(path, "postmaster"))
	if err != nil {
		return errors.Is(err, os.ErrNotExist)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil || pid <= 1 || !alive(pid) || !answers(path) {
		return true
	}
	_ = syscall.Kill(pid, syscall.SIGINT)
	for range 40 {
		if !alive(pid) {
			return true
		}
		time.Sleep(50 * time.Millisecond)
	}
	return false
}

func alive(pid int) bool { return !errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) }

func answers(path string) bool {
	sockets, err := filepath.Glob(filepath.Join(path, "s", ".s.PGSQL.*[0-9]"))
	if err != nil {
		return false
	}
	for _, socket := range sockets {
		conn, err := net.DialTimeout("unix", socket, time.Second)
		if err == nil {
			_ = conn.Close()
			return true
		}
	}
	return false
}
