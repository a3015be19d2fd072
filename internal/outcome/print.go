package outcome

import "fmt"

// Format writes the kind of the value instead of the value: a value of a row must not reach a log.
func (v Value) Format(f fmt.State, _ rune) {
	_, _ = fmt.Fprint(f, [...]string{"NULL", "(number withheld)", "(text withheld)", "(boolean withheld)"}[min(v.Kind, Bool)])
}

// MarshalText does the same for JSON.
func (v Value) MarshalText() ([]byte, error) { return fmt.Append(nil, v), nil }
