package supervise

import "syscall"

// childAttr puts the child in its own process group, so that Ctrl-C reaches the relay first. The child exits when the link
// closes, even if the relay is killed.
func childAttr() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
