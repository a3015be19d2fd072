package replay

import "sync"

// maxWarned bounds warnings.sent, which is cleared when it is full.
const maxWarned = 1000

// warnings passes each warning on once.
type warnings struct {
	send func(text string) // nil = nowhere
	mu   sync.Mutex        // guards sent
	sent map[string]bool
}

// warn passes a warning on, each text once unless sent was cleared meanwhile.
func (w *warnings) warn(warning string) {
	if w.send == nil {
		return
	}
	w.mu.Lock()
	known := w.sent[warning]
	if w.sent == nil || len(w.sent) >= maxWarned { // clients choose the names of settings
		w.sent = map[string]bool{}
	}
	w.sent[warning] = true
	w.mu.Unlock()
	if !known {
		w.send(warning)
	}
}
