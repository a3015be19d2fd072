package recent

// Map is a map that drops entries that were not used for long: it holds at least the latest N keys and at most 2N. The
// zero value with N set is ready for use. It is not safe for concurrent use.
type Map[K comparable, V any] struct {
	N          int
	young, old map[K]V
}

// Get returns the value of a key, and marks it as used.
func (r *Map[K, V]) Get(k K) (V, bool) {
	if v, ok := r.young[k]; ok {
		return v, true
	}
	v, ok := r.old[k]
	if ok {
		r.Put(k, v)
	}
	return v, ok
}

// Put sets the value of a key.
func (r *Map[K, V]) Put(k K, v V) {
	if r.young == nil {
		r.young = make(map[K]V)
	}
	if _, ok := r.young[k]; !ok && len(r.young) >= r.N {
		r.old, r.young = r.young, make(map[K]V)
	}
	r.young[k] = v
}

// Clear drops all entries.
func (r *Map[K, V]) Clear() { r.young, r.old = nil, nil }
