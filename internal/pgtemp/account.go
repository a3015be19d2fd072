package pgtemp

import (
	"errors"
	"os"
	"os/user"
	"strconv"
	"syscall"
)

// account is the system account that the server runs as.
type account struct {
	name     string
	uid, gid int
	drop     bool // the caller is root: switch to this account
}

// serverAccount returns the caller's account or, because PostgreSQL refuses to run as root, an unprivileged one.
func serverAccount() (account, error) {
	if uid := os.Geteuid(); uid != 0 {
		return account{uid: uid, gid: os.Getegid()}, nil
	}
	for _, name := range []string{"postgres", "nobody", "daemon"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, errUID := strconv.Atoi(u.Uid)
		gid, errGID := strconv.Atoi(u.Gid)
		if errUID == nil && errGID == nil && uid != 0 {
			return account{name: name, uid: uid, gid: gid, drop: true}, nil
		}
	}
	return account{}, errors.New("postgresql does not run as root and there is no account postgres, nobody or daemon: " +
		"add one (useradd --system postgres), or run as an ordinary user")
}

// attributes puts a child in its own session and process group, so that Ctrl-C in the terminal reaches only the parent,
// which then stops the child.
func (a account) attributes() *syscall.SysProcAttr {
	attr := &syscall.SysProcAttr{Setsid: true}
	if a.drop {
		attr.Credential = &syscall.Credential{Uid: uint32(a.uid), Gid: uint32(a.gid)}
	}
	return attr
}

// own gives a path to the account.
func (a account) own(path string) error {
	if !a.drop {
		return nil
	}
	return os.Chown(path, a.uid, a.gid)
}
