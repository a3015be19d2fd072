package main

import (
	"bytes"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"
)

// stuck is a writer that takes nothing until it is let.
type stuck struct {
	lockedBuffer
	let chan struct{}
}

func (s *stuck) Write(p []byte) (int, error) {
	<-s.let
	return s.lockedBuffer.Write(p)
}

// Nobody who logs waits for a reader that has stopped; every line is written or counted.
func TestLogQueue(t *testing.T) {
	t.Parallel()
	const lines = 3 * logLines
	to := &stuck{let: make(chan struct{})}
	q := newLogQueue(to)
	line := []byte("{}\n")
	for i := range lines {
		line = fmt.Appendf(line[:0], "%d\n", i)
		if n, err := q.Write(line); n != len(line) || err != nil {
			t.Fatalf("Write: %d, %v", n, err)
		}
	}
	q.close(0) // waits for nobody
	if _, err := q.Write([]byte("late\n")); err != nil {
		t.Error(err)
	}
	close(to.let)
	<-q.done
	written, dropped := 0, 0
	for text := range strings.Lines(to.String()) {
		if m := regexp.MustCompile(`"lines":(\d+)`).FindStringSubmatch(text); m != nil {
			dropped += atoi(m[1])
			continue
		}
		if text != itoa(atoi(text[:len(text)-1]))+"\n" {
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

// What was logged is there when close returns.
func TestLogQueueIsFlushed(t *testing.T) {
	t.Parallel()
	var to bytes.Buffer
	q := newLogQueue(&to)
	for range 100 {
		_, _ = q.Write([]byte("x\n"))
	}
	q.close(time.Minute)
	if n := strings.Count(to.String(), "x\n"); n != 100 {
		t.Errorf("%d lines, want 100", n)
	}
}
