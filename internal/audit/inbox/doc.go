// Package inbox holds captured queries until they are recognized, so that a flood of one kind does not delay another.
package inbox
