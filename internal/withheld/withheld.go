// Package withheld holds the types for values from rows of protected tables: a text, a category, a group key, a
// threshold, the edge of a bin.
//
// A [Text] has two forms. Every way of printing it (the verbs of package fmt, JSON, YAML, zap, a template) gives the
// public form, which says what kind of value was left out. Only [Text.Reveal] gives the value, so that a search for
// that name finds every place where a value can leave the process. [Value] does the same for other types, and [Reveal]
// for errors.
//
// The package does no I/O.
package withheld

import (
	"fmt"
	"strings"
)

// Mark replaces a withheld value.
const Mark = "(withheld)"

// Text is a text that can contain values of rows. The zero Text is empty.
type Text struct {
	public string
	// value is nil if nothing is withheld. Package fmt calls no methods on unexported fields. It prints the target of a
	// pointer to a struct or a slice, but never that of a pointer to a pointer.
	value **string
}

// Public returns a Text that contains no value of a row.
func Public(s string) Text { return Text{public: s} }

// New returns a Text that reveals value and prints as public.
func New(value, public string) Text {
	if value == public {
		return Public(public)
	}
	p := &value
	return Text{public: public, value: &p}
}

// Reveal returns the text with its values, for readers who are authorized to see the raw data.
func (t Text) Reveal() string {
	if t.value == nil {
		return t.public
	}
	return **t.value
}

// Revealed returns a Text that prints with its values.
func (t Text) Revealed() Text { return Public(t.Reveal()) }

// String returns the public form.
func (t Text) String() string { return t.public }

// Format writes the public form, for every verb.
func (t Text) Format(f fmt.State, verb rune) { fmt.Fprintf(f, fmt.FormatString(f, verb), t.public) }

// MarshalText returns the public form, for JSON and YAML.
func (t Text) MarshalText() ([]byte, error) { return []byte(t.public), nil }

// UnmarshalText reads a printed text, which has nothing to reveal.
func (t *Text) UnmarshalText(b []byte) error {
	*t = Public(string(b))
	return nil
}

// Equal reports whether both forms are equal.
func (t Text) Equal(u Text) bool { return t.public == u.public && t.Reveal() == u.Reveal() }

// Sprintf formats like fmt.Sprintf. Arguments of type Text contribute their values to the value of the result, and
// their public forms to its public form.
func Sprintf(format string, args ...any) Text {
	values := make([]any, len(args))
	withheld := false
	for i, a := range args {
		values[i] = a
		if t, ok := a.(Text); ok {
			values[i] = t.Reveal()
			withheld = withheld || t.value != nil
		}
	}
	public := fmt.Sprintf(format, args...)
	if !withheld {
		return Public(public)
	}
	return New(fmt.Sprintf(format, values...), public)
}

// Join joins texts. Consecutive equal public forms of withheld texts are written once, because their number would
// reveal the number of values.
func Join(texts []Text, separator string) Text {
	var public, values []string
	for _, t := range texts {
		values = append(values, t.Reveal())
		if n := len(public); n == 0 || public[n-1] != t.public || t.value == nil {
			public = append(public, t.public)
		}
	}
	return New(strings.Join(values, separator), strings.Join(public, separator))
}

// Value is a value of any type that prints as [Mark]. The zero Value reveals the zero value of T.
type Value[T any] struct{ p **T } // see Text.value

// Of returns a Value that reveals v.
func Of[T any](v T) Value[T] {
	p := &v
	return Value[T]{&p}
}

// Reveal returns the value, for readers who are authorized to see the raw data.
func (v Value[T]) Reveal() (value T) {
	if v.p != nil {
		value = **v.p
	}
	return value
}

func (v Value[T]) String() string { return Mark }

// Format writes Mark, for every verb.
func (v Value[T]) Format(f fmt.State, _ rune) { _, _ = fmt.Fprint(f, Mark) }

// MarshalText returns Mark, for JSON and YAML.
func (v Value[T]) MarshalText() ([]byte, error) { return []byte(Mark), nil }
