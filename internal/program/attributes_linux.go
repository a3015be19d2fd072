package program

import "syscall"

// attributes are those of a process that is killed when this process ends.
func attributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
