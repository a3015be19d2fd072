package exact

// Beside stands for what comes beside the columns: errors and notices.
const Beside = -1

// Texts are the texts of a column of which many differ in ways that are not read.
type Texts struct {
	Column   int
	All, New int // those counted, and of them those that never came before, and of which not only the numbers are new
}

// Unread returns the columns whose texts differ in ways that are not read.
func (a *Answers) Unread() (all []Texts) {
	for i, t := range a.texts {
		if n := t.fresh - t.known; t.all >= leastTexts && float64(n) >= unreadShare*float64(t.all) {
			all = append(all, Texts{i - 1, t.all, n})
		}
	}
	return all
}

// Longest returns how many characters from each end of a text are read, and how many half of the longest text has.
func (a *Answers) Longest() (read, half int) { return maxPlaces, (a.longest + 1) / 2 }

// Turn is a kind of questions of which so many are asked at a time, of so many.
type Turn struct {
	What       string
	Looked, Of int
}

// Turns returns the kinds of questions that take turns.
func (a *Answers) Turns() (all []Turn) {
	for k := range a.asked {
		if q := &a.asked[k]; q.slices > 1 && reading(k) != together {
			all = append(all, Turn{q.name, min(q.capacity, q.wanted), q.wanted})
		}
	}
	if a.seen.lost > 0 {
		all = append(all, Turn{"values that are known when they come again", maxMemory, maxMemory + a.seen.lost})
	}
	return all
}
