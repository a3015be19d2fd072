package supervise

import "syscall"

// childAttr puts the child in a process group of its own, so that Ctrl-C reaches the relay first. The child ends
// by itself when the link closes, also when the relay is killed.
func childAttr() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
