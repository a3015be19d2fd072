// Package tracker turns the messages of one PostgreSQL session into captured queries.
//
// It owns what a session's past means for its next statement: prepared statements and portals, the
// transaction block, the settings that the client made, the encoding; and it pairs what the client sent with
// what the server answered. It does no I/O, keeps no clock and starts no goroutine. Records of messages
// (AppendHeader) go in, from both directions and each in its own order; capture.Query values come out through a
// callback.
//
// The relay writes bytes on before it looks at them, so an answer may be recorded before its question. The
// tracker therefore keeps one queue for each direction and moves on only when the heads of both belong
// together; any interleaving of the two gives the same queries.
//
// It never guesses. What it cannot know (a body that was not copied, a statement prepared out of sight) it
// forgets and counts; settings that may have changed unseen make the later queries SettingsUncertain; and
// where it can no longer say which answer belongs to which message it stops for good (Off).
package tracker
