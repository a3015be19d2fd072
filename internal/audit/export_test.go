package audit

// InboxLen returns the number of queries in the inbox.
func (a *Auditor) InboxLen() int {
	n, _ := a.inbox.held()
	return n
}
