package withheld

import (
	"fmt"
	"path"
	"runtime"
	"strings"
)

// Recovered returns an error for a value returned by recover in a deferred function. Its message has the place of the panic.
// For a runtime.Error it has the runtime's message, which contains types and indexes. Any other value can contain data, so
// the message has only its type. Reveal returns the full message.
func Recovered(r any) Revealer {
	short := fmt.Sprintf("a value of type %T %s", r, Mark)
	if fault, ok := r.(runtime.Error); ok {
		short = fault.Error()
	}
	return &panicError{Sprintf("internal error: panic at %s: %s", panicPlace(), New(fmt.Sprint(r), short))}
}

type panicError struct{ text Text }

// Error returns the message without the value.
func (e *panicError) Error() string { return e.text.String() }

// Reveal returns the message with the value.
func (e *panicError) Reveal() string { return e.text.Reveal() }

// Format writes the message without the value, for every verb.
func (e *panicError) Format(f fmt.State, verb rune) { e.text.Format(f, verb) }

// panicPlace returns the file and line of the code that panicked.
func panicPlace() string {
	var pcs [64]uintptr
	frames := runtime.CallersFrames(pcs[:runtime.Callers(2, pcs[:])])
	for panicked := false; ; {
		frame, more := frames.Next()
		isRuntime := strings.HasPrefix(frame.Function, "runtime.")
		if panicked && !isRuntime {
			dir, file := path.Split(frame.File)
			return fmt.Sprintf("%s:%d", path.Join(path.Base(dir), file), frame.Line)
		}
		panicked = panicked || frame.Function == "runtime.gopanic"
		if !more {
			return "an unknown place"
		}
	}
}
