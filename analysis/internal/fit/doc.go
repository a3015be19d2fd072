// Package fit holds the numerics that several statistics share: estimates that shrink towards zero, and systems of
// linear equations.
package fit
