package withheld

import "strings"

// Revealer is an error whose message omits values that may come from a row; Reveal returns the full message.
type Revealer interface {
	error
	Reveal() string
}

// Reveal returns the message of err with the full messages of the Revealers in its tree. The message of a wrapping error
// contains the short message, which Reveal replaces; if it does not contain it, its message is returned unchanged.
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
