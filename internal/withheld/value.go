package withheld

import "fmt"

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
