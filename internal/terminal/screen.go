// Package terminal shows the progress of a command.
package terminal

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"
)

// Screen shows progress on a terminal as a bar and elsewhere as lines, with log lines in between. It is an io.Writer
// for the logs of this process and of the auditor. It is safe for concurrent use.
type Screen struct {
	mu   sync.Mutex // guards the fields below
	w    io.Writer
	tty  bool
	bar  *progressbar.ProgressBar
	part []byte // of an incomplete log line
	last time.Time
	done int
}

// NewScreen returns a Screen that writes to w.
func NewScreen(w io.Writer) *Screen { return &Screen{w: w, tty: Interactive(w), done: -1} }

// Interactive reports whether w is a terminal.
func Interactive(w io.Writer) bool {
	file, ok := w.(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}

// Say prints one line.
func (s *Screen) Say(line string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.line([]byte(line + "\n"))
}

// Write prints log output line by line.
func (s *Screen) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.part = append(s.part, p...)
	for {
		i := bytes.IndexByte(s.part, '\n')
		if i < 0 {
			return len(p), nil
		}
		s.line(s.part[:i+1])
		s.part = append(s.part[:0], s.part[i+1:]...)
	}
}

func (s *Screen) line(text []byte) { // with s.mu held
	if s.bar != nil {
		_ = s.bar.Clear()
	}
	_, _ = s.w.Write(text)
}

// progressEvery is the interval of progress lines without a terminal.
const progressEvery = 5 * time.Second

// Progress shows the progress of the audits.
func (s *Screen) Progress(decided, total, trials int, elapsed time.Duration) {
	s.show(fmt.Sprintf("%d of %d audits decided, %d pairs of trials, %.0f s", decided, total, trials, elapsed.Seconds()), decided, total, decided)
}

// Rows shows the progress of a copy; total is an estimate. Without a terminal it prints a line at every quarter and
// every five seconds.
func (s *Screen) Rows(step string, done, total int64, elapsed time.Duration) {
	percent := 0
	if total > 0 {
		percent = int(min(100, 100*done/total))
	}
	s.show(fmt.Sprintf("%s: %d of about %d rows, %.0f s", step, done, total, elapsed.Seconds()), percent, 100, percent/25)
}

// show draws the bar at done of total. Without a terminal it prints a line when mark changes.
func (s *Screen) show(text string, done, total, mark int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.tty {
		if mark != s.done || time.Since(s.last) >= progressEvery {
			s.done, s.last = mark, time.Now()
			_, _ = io.WriteString(s.w, text+"\n")
		}
		return
	}
	if s.bar == nil {
		s.bar = progressbar.NewOptions(total, progressbar.OptionSetWriter(s.w), progressbar.OptionClearOnFinish(),
			progressbar.OptionSetElapsedTime(false), progressbar.OptionSetPredictTime(false), progressbar.OptionSetWidth(15))
	}
	s.bar.Describe(text)
	_ = s.bar.Set(done)
}

// Done removes the bar.
func (s *Screen) Done() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.bar != nil {
		_ = s.bar.Clear()
		s.bar = nil
	}
}
