package ledger

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// CheckSpool reports whether the directory of a spool exists. The error is why this user cannot keep a spool there, or
// cannot make the directory. It changes nothing.
func CheckSpool(dir string) (exists bool, err error) {
	info, err := os.Stat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return false, canMake(filepath.Clean(dir))
	case err != nil:
		return false, err
	case !info.IsDir():
		return true, fmt.Errorf("%s is not a directory", dir)
	case info.Mode().Perm()&0o077 != 0 || !ownedByUs(info):
		return true, ErrSpoolReadable
	}
	return true, mayWrite(dir)
}

// canMake returns an error if this user cannot make a directory that does not exist: the nearest parent that exists
// must be a directory in which this user may write.
func canMake(dir string) error {
	if _, err := os.Lstat(dir); err == nil { // os.Stat does not find what it points to
		return fmt.Errorf("%s is a symbolic link to nothing", dir)
	}
	parent := filepath.Dir(dir)
	switch info, err := os.Stat(parent); {
	case errors.Is(err, fs.ErrNotExist) && parent != dir:
		return canMake(parent)
	case err != nil:
		return err
	case !info.IsDir():
		return fmt.Errorf("%s is not a directory", parent)
	}
	return mayWrite(parent)
}

// mayWrite returns an error if this user may not create files in a directory.
func mayWrite(dir string) error {
	if err := unix.Faccessat(unix.AT_FDCWD, dir, unix.W_OK|unix.X_OK, unix.AT_EACCESS); err != nil {
		return fmt.Errorf("this user cannot write in %s: %w", dir, err)
	}
	return nil
}
