package tracker

// bare counts the answers to Sync messages with nothing before them to answer, while it is unknown which of these
// messages the server ignored: after a COPY FROM STDIN that failed, because the server ignores the Sync messages that
// it reads during COPY, and after a gap. Such an answer is a ReadyForQuery alone. So the first answer with anything
// else in it proves that the answers before it are complete.
type bare struct {
	active bool
	after  bool // after a gap; the tap does not count these messages (tap.asked)
	least  int  // how many more answers come at least; negative: the answer to a Sync came before the Sync was read
	most   int  // how many more answers can come
}

// sync adds a Sync message that the server answers; it can also have ignored it if doubtful.
func (b *bare) sync(doubtful bool) {
	b.most++
	if !doubtful {
		b.least++
	}
}

// ready takes a ReadyForQuery; false if none is due.
func (b *bare) ready() bool {
	if !b.active || b.most == 0 {
		return false
	}
	b.least, b.most = b.least-1, b.most-1
	return true
}

// failedCopy is the state after a COPY FROM STDIN failed, until the client's messages behind it are reached.
type failedCopy struct {
	active   bool
	finished bool // the client has sent CopyDone or CopyFail: the server reads what follows as usual
	doubtful bool // a Sync came before that: it is unknown whether the server has ignored it
}

// afterFailedCopy handles a client message behind a failed COPY; false if it is one of those that belong to the COPY,
// or if the tracker is lost.
func (t *Tracker) afterFailedCopy(r record) bool {
	f := &t.failedCopy
	switch r.typ {
	case 'c', 'f':
		f.finished = true
		return false
	case 'S':
		t.bare.sync(!f.finished)
		if f.finished {
			t.skipping, f.active = false, false
		} else {
			f.doubtful = true
		}
		return false
	}
	f.active = false
	if t.skipping && f.doubtful { // the Sync that ends the skipping may have been one of those
		t.lose()
		return false
	}
	return true
}

// content handles the first message of an answer that is more than a ReadyForQuery; false if an answer is missing
// before it.
func (b *bare) content(ignored *Unanswered) bool {
	if !b.active {
		return true
	}
	complete := b.least <= 0
	if !b.after {
		ignored.Copy += b.most
	}
	*b = bare{}
	return complete
}

// Unanswered counts the client's Query, FunctionCall and Sync messages that the server did not answer with
// ReadyForQuery, since the last gap. It does not count too many of them.
type Unanswered struct {
	Gaps    int // gaps so far
	Skipped int // ignored after an error in the extended protocol
	Copy    int // Sync messages that were ignored during COPY FROM STDIN
}

// Unanswered returns the messages that were not answered, up to the last ReadyForQuery.
func (t *Tracker) Unanswered() Unanswered { return t.settled }

// unasked reports whether a server message can be handled although the client's next message is not known yet.
func (b *bare) unasked(r record) bool {
	return r.typ == 'Z' && b.active && b.most > 0 || r.typ == 'S' || r.typ == timeRecord || r.typ == statedRecord
}
