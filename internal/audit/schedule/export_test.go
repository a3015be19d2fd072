package schedule

// Find returns the audit with a key, or nil.
func (r *Roster) Find(key string) *Audit { return r.byKey[key] }

// All calls visit for every audit, in no particular order.
func (r *Roster) All(visit func(*Audit)) {
	for _, a := range r.list {
		visit(a)
	}
}
