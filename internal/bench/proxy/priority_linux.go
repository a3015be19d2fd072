package proxy

import "golang.org/x/sys/unix"

// idlePriority makes a process, and the processes that it starts afterwards, run only when no other process needs the CPU.
func idlePriority(pid int) error {
	return unix.SchedSetAttr(pid, &unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_IDLE}, 0)
}
