package setup

import (
	"bytes"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
)

// stuck is a writer that blocks until let is closed.
type stuck struct {
	bytes.Buffer // read only after everything has been written
	let          chan struct{}
}

func (s *stuck) Write(p []byte) (int, error) {
	<-s.let
	return s.Buffer.Write(p)
}

// Logging does not wait for a reader that has stopped; every line is written or counted.
func TestLogQueue(t *testing.T) {
	t.Parallel()
	const lines = 3 * logLines
	to := &stuck{let: make(chan struct{})}
	q := NewLogQueue(to)
	line := []byte("{}\n")
	for i := range lines {
		line = fmt.Appendf(line[:0], "%d\n", i)
		if n, err := q.Write(line); n != len(line) || err != nil {
			t.Fatalf("Write: %d, %v", n, err)
		}
	}
	q.Close(0) // does not wait
	if _, err := q.Write([]byte("late\n")); err != nil {
		t.Error(err)
	}
	close(to.let)
	<-q.done
	written, dropped := 0, 0
	for text := range strings.Lines(to.String()) {
		if m := regexp.MustCompile(`"lines":(\d+)`).FindStringSubmatch(text); m != nil {
			n, _ := strconv.Atoi(m[1])
			dropped += n
			continue
		}
		if !regexp.MustCompile(`^(0|[1-9]\d*)\n$`).MatchString(text) {
			t.Errorf("line %q", text)
		}
		written++
	}
	if written < logLines || written+dropped != lines {
		t.Errorf("%d lines were written and %d counted as dropped, of %d", written, dropped, lines)
	}
	if strings.Contains(to.String(), "late") {
		t.Error("a line was written after the end")
	}
}

// All lines have been written when Close returns.
func TestLogQueueIsFlushed(t *testing.T) {
	t.Parallel()
	var to bytes.Buffer
	q := NewLogQueue(&to)
	for range 100 {
		_, _ = q.Write([]byte("x\n"))
	}
	q.Close(time.Minute)
	if n := strings.Count(to.String(), "x\n"); n != 100 {
		t.Errorf("%d lines, want 100", n)
	}
}
