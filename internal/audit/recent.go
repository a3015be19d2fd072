package audit

// recent is a map that drops entries that were not used for long: it holds at least the latest n keys and at most 2n. The
// zero value with n set is ready for use. It is not safe for concurrent use.
type recent[K comparable, V any] struct {
	n          int
	young, old map[K]V
}

// get returns the value of a key, and marks it as used.
func (r *recent[K, V]) get(k K) (V, bool) {
	if v, ok := r.young[k]; ok {
		return v, true
	}
	v, ok := r.old[k]
	if ok {
		r.put(k, v)
	}
	return v, ok
}

// put sets the value of a key.
func (r *recent[K, V]) put(k K, v V) {
	if r.young == nil {
		r.young = make(map[K]V)
	}
	if _, ok := r.young[k]; !ok && len(r.young) >= r.n {
		r.old, r.young = r.young, make(map[K]V)
	}
	r.young[k] = v
}

// clear drops all entries.
func (r *recent[K, V]) clear() { r.young, r.old = nil, nil }
