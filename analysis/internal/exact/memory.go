package exact

// memory counts how often a value came in each world, as the answer to a question. It is a table with open addressing, of
// fingermarks and two counts.
type memory struct {
	marks  []uint32 // 0 for none
	counts [][2]uint8
	n      int
	lost   int // values that found no room
}

// maxMemory is the most values that are kept: later ones count as never seen.
const maxMemory = 1 << 14

// find returns the place of a hash, and whether it is there.
func (m *memory) find(hash uint64) (at int, known bool) {
	mark, mask := uint32(hash>>32)|1, len(m.marks)-1
	for at = home(mark) & mask; m.marks[at] != 0; at = (at + 1) & mask {
		if m.marks[at] == mark {
			return at, true
		}
	}
	return at, false
}

// What was seen of a value before.
const (
	neverSeen = iota
	onceOnD0
	oftenOnD0
	onceOnD1
	oftenOnD1
	onBoth
	mostlyOnD0
	mostlyOnD1
)

// recall returns what was seen of a value.
func (m *memory) recall(hash uint64) uint8 {
	if m.n == 0 {
		return neverSeen
	}
	at, known := m.find(hash)
	if !known {
		return neverSeen
	}
	switch a, b := int(m.counts[at][0]), int(m.counts[at][1]); {
	case b == 0 && a == 1:
		return onceOnD0
	case b == 0:
		return oftenOnD0
	case a == 0 && b == 1:
		return onceOnD1
	case a == 0:
		return oftenOnD1
	case a > 4*b:
		return mostlyOnD0
	case b > 4*a:
		return mostlyOnD1
	}
	return onBoth
}

// place returns the place of a value, which gets one if there is room, and -1 otherwise.
func (m *memory) place(hash uint64) int {
	if len(m.marks) == 0 {
		m.grow(64)
	}
	at, known := m.find(hash)
	switch {
	case known:
		return at
	case m.n == maxMemory:
		return -1
	case 3*(m.n+1) > 2*len(m.marks):
		m.grow(2 * len(m.marks))
		at, _ = m.find(hash)
	}
	m.marks[at] = uint32(hash>>32) | 1
	m.n++
	return at
}

// add counts a value of a world.
func (m *memory) add(world int, hash uint64) {
	at := m.place(hash)
	if at < 0 {
		m.lost++
		return
	}
	c := &m.counts[at]
	if c[world]++; c[world] == 255 { // the proportions stay, and what was seen in a world stays seen
		c[0], c[1] = (c[0]+1)/2, (c[1]+1)/2
	}
}

// home is where a fingerprint is looked for first.
func home(mark uint32) int { return int(mark * 0x9E3779B1 >> 8) }

// grow makes a table of another size.
func (m *memory) grow(size int) {
	old := *m
	m.marks, m.counts = make([]uint32, size), make([][2]uint8, size)
	mask := size - 1
	for i, mark := range old.marks {
		if mark == 0 {
			continue
		}
		at := home(mark) & mask
		for m.marks[at] != 0 {
			at = (at + 1) & mask
		}
		m.marks[at], m.counts[at] = mark, old.counts[i]
	}
}
