package config

import (
	"crypto/sha256"
	"fmt"
	"path/filepath"
	"strings"
)

// stateDirectory returns where a process with this environment keeps its state: the directory of the unit under
// systemd, otherwise that of the user, by the XDG Base Directory Specification; "" = there is none.
func stateDirectory(getenv func(string) string) string {
	if dir, _, _ := strings.Cut(getenv("STATE_DIRECTORY"), ":"); filepath.IsAbs(dir) {
		return dir
	}
	if dir := getenv("XDG_STATE_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "dpwatch")
	}
	if home := getenv("HOME"); filepath.IsAbs(home) && home != "/" {
		return filepath.Join(home, ".local", "state", "dpwatch")
	}
	return ""
}

// keepSpool sets the default of ledger.spool.dir: a directory of the configuration's file.
func (c *Config) keepSpool(state, file string) {
	if c.Ledger.Spool.Dir != "" || state == "" || c.LedgerDSN() == "" && len(c.Engines) == 0 {
		return
	}
	if path, err := filepath.Abs(file); err == nil {
		file = path
	}
	sum := sha256.Sum256([]byte(file))
	c.Ledger.Spool.Dir = filepath.Join(state, "spool", fmt.Sprintf("%s-%x", filepath.Base(file), sum[:4]))
}
