package withheld

import (
	"fmt"
	"path"
	"runtime"
	"strings"
)

// Revealer is an error whose message omits values that may come from a row; Reveal returns the full message.
type Revealer interface {
	error
	Reveal() string
}

// Reveal returns the message of err with the full messages of the Revealers in its tree. The message of a wrapping
// error contains the short message, which Reveal replaces; if it does not contain it, its message is returned
// unchanged.
func Reveal(err error) string {
	if err == nil {
		return ""
	}
	if r, ok := err.(Revealer); ok { //nolint:errorlint // the tree is walked here
		return r.Reveal()
	}
	text := err.Error()
	for _, inner := range children(err) {
		if short, whole := inner.Error(), Reveal(inner); short != whole && short != "" {
			text = strings.Replace(text, short, whole, 1)
		}
	}
	return text
}

func children(err error) []error {
	switch e := err.(type) { //nolint:errorlint // the tree is walked here
	case interface{ Unwrap() error }:
		if inner := e.Unwrap(); inner != nil {
			return []error{inner}
		}
	case interface{ Unwrap() []error }:
		return e.Unwrap()
	}
	return nil
}

// Recovered returns an error for a value returned by recover in a deferred function. Its message has the place of the
// panic. For a runtime.Error it has the runtime's message, which contains types and indexes. Any other value can
// contain data, so the message has only its type. Reveal returns the full message.
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
