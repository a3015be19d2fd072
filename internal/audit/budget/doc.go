// Package budget keeps replays within what they may use in an hour.
package budget
