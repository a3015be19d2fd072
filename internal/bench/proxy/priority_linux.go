package proxy

import "golang.org/x/sys/unix"

// idlePriority makes a process, and those that it starts from now on, run only when nobody else wants to.
func idlePriority(pid int) error {
	return unix.SchedSetAttr(pid, &unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_IDLE}, 0)
}
