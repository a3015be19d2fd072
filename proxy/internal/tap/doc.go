// Package tap copies the few messages of relayed sessions that matter to the audit and passes them to the trackers.
//
// It owns the walkers, which follow the messages of one direction by their headers, the bounded buffer of each
// direction, and the drainer: one goroutine that runs the trackers of all sessions. Relayed chunks go in; capture.Query
// values come out at a Sink. It never blocks the relay for longer than a copy takes.
package tap
