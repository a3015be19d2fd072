// Package tracker turns the messages of one PostgreSQL session into captured queries.
//
// It owns the session state that affects the next statement: prepared statements and portals, the transaction block,
// the client's settings, the encoding. It pairs the client's messages with the server's answers. It does no I/O, has no
// clock and starts no goroutine. Records of messages (AppendHeader) go in, from both directions, each in its own order;
// capture.Query values come out through a callback.
//
// The relay forwards bytes before it looks at them, so an answer can be recorded before its question. The tracker
// therefore keeps one queue for each direction and advances only when the heads of both belong together. Any
// interleaving of the two gives the same queries.
//
// The tracker never guesses. Unknown state (a body that was not copied, a statement prepared unseen) is discarded and
// counted. Settings that can have changed unseen are in doubt (capture.Doubt) in later queries. If the tracker can no
// longer match answers to messages (Lost), it discards them until a gap, whose end is a moment when the session was
// idle.
package tracker
