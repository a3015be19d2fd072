package withheld

import "fmt"

// Value is a value of any type that prints as [Mark]. The zero Value reveals the zero value of T.
type Value[T any] struct{ p **T } // see Text.value

// Of returns a Value.
func Of[T any](v T) Value[T] {
	p := &v
	return Value[T]{&p}
}

// Reveal returns the value itself, for those who may read the raw data.
func (v Value[T]) Reveal() (value T) {
	if v.p != nil {
		value = **v.p
	}
	return value
}

// String returns Mark.
func (v Value[T]) String() string { return Mark }

// Format writes Mark, whatever the verb.
func (v Value[T]) Format(f fmt.State, _ rune) { _, _ = fmt.Fprint(f, Mark) }

// MarshalText returns Mark, for JSON and YAML.
func (v Value[T]) MarshalText() ([]byte, error) { return []byte(Mark), nil }
