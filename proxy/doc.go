// Package proxy relays PostgreSQL sessions between clients and one engine, byte for byte, and gives away what
// the clients asked as captured queries.
//
// It owns listeners' connections, startup, cancel requests, the relay in both directions, the tap on it, and
// shutdown. It never parses SQL beyond what following a session takes, never decodes a message on the way,
// keeps nothing of passwords and rows, calls no cgo, and knows nothing of what becomes of a captured query.
// Bytes go through; capture.Query values come out at a Sink; Stats counts.
//
//	client                         proxy                           engine
//	  |-- SSLRequest ---------------->|                                |
//	  |<------------------------- N --|   (GSSENCRequest likewise)     |
//	  |   or S, and TLS begins        |   with TLS to the engine:      |
//	  |                               |-- SSLRequest, S, TLS --------->|
//	  |-- StartupMessage ------------>|-- the same bytes ------------->|
//	  |<== authentication, both ways, untouched and not recorded =====>|
//	  |<------------------------------|<-- ParameterStatus, -----------|   noted: encoding, string syntax
//	  |                               |    ReadyForQuery               |   noted: the tracker starts
//	  |-- Query "SELECT ..." -------->|-- the same bytes ------------->|
//	  |                               |...> tap: Query, with its text  |
//	  |<------------------------------|<-- RowDescription, DataRow* ---|   skipped by their length
//	  |<------------------------------|<-- CommandComplete ------------|
//	  |                               |...> tap: time, CommandComplete |
//	  |<------------------------------|<-- ReadyForQuery --------------|
//	  |                               |...> tap: ReadyForQuery         |
//	  |                      every 25 ms: drainer                      |
//	  |                      tracker pairs -> Sink.Offer(query)        |
//	  |-- Parse, Bind, Execute, Sync->|-- the same bytes ------------->|   likewise, by name and portal
//	  |-- EOF ----------------------->|-- EOF ------------------------>|   one half; the other goes on
//	  |<----------------------- EOF --|<------------------------- EOF--|
//
//	  |-- CancelRequest ------------->|-- the same bytes, on a new --->|
//	  |<----------------------- EOF --|<--- connection ---------- EOF--|
//
// TLS, where it is configured, ends here on each leg by itself, or is passed through whole: then bytes are
// relayed unseen and nothing is captured. The relay changes no byte, with one exception: where the engine's leg
// is TLS and the client's is not, SCRAM-SHA-256-PLUS is taken out of what the engine offers (plus.go).
//
// On Linux a session whose two sides are plain sockets is handed, behind its StartupMessage, to an event loop: one
// thread that carries many sessions and asks the kernel what is there, without the scheduler (loop). Other sessions
// have two goroutines. Both do the same: read a chunk from one side, write the same bytes to the other, and only
// then look at the headers of the messages in it. The few bodies that matter are copied into a bounded
// buffer. No message wakes anybody: one goroutine for the whole server looks at the buffers now and then and
// runs the trackers. A full buffer, a message that makes no sense, a panic in the tracker: the capture of that
// session loses something or stops, which is counted, and its bytes go on. After a full buffer it comes back when the
// server has answered all that the client sent.
//
// A server that breaks its connection has often said why just before: the session goes on until that has come through
// to the client, and what the client still sends is dropped.
package proxy
