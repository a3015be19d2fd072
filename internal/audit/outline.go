package audit

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"

	"github.com/dpwatch/dpwatch/internal/audit/inbox"
)

// Parsing takes a hundred times as long as reading a text once. If many texts that look alike were turned away in a row,
// only a sample of them is parsed, and those that come again.
const (
	floodAfter  = 32      // texts turned away in a row
	floodSample = 16      // then one in floodSample is parsed
	glimpsed    = 1 << 16 // minimal number of texts that are remembered, to recognise repeated ones
)

// passOver reports whether a text is turned away without being parsed, and then counts it. id identifies the statement with its
// comments, parameters and settings. before reports that the same statement was turned away so, and is to be parsed now.
func (a *Auditor) passOver(l inbox.Look, id [sha256.Size]byte) (over, before bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	turned, _ := a.outlines.get(l.Outline)
	if turned < floodAfter {
		return false, false
	}
	statement := max(1, binary.BigEndian.Uint64(id[:]))
	if glimpse, again := a.glimpses.get(l.Text); again {
		if before = glimpse == statement; before {
			a.glimpses.put(l.Text, 0)
		}
		return false, before
	}
	a.outlines.put(l.Outline, turned+1)
	if turned%floodSample == 0 {
		a.glimpses.put(l.Text, 0)
		return false, false
	}
	a.glimpses.put(l.Text, statement)
	a.count(fmt.Sprintf("%016x", l.Text), false)
	return true, false
}

// outcomeOf records whether a text that was parsed was turned away. The caller holds Auditor.mu.
func (a *Auditor) outcomeOf(l inbox.Look, turnedAway bool) {
	if l.Outline == 0 {
		return
	}
	turned, _ := a.outlines.get(l.Outline)
	switch {
	case !turnedAway:
		a.outlines.put(l.Outline, 0)
	case turned < floodAfter:
		a.outlines.put(l.Outline, turned+1)
	}
}
