// Package proxy relays PostgreSQL sessions between clients and one engine, byte for byte, and emits the statements of
// the clients as captured queries.
//
// It owns the listeners' connections, limits, cancel requests, and shutdown. Its internal packages are startup (both
// connections of a session until the client's StartupMessage), relay (the bytes), tap (copies of messages), tracker
// (queries from these messages), and wire (what they share). It parses SQL only as far as tracking the state of a
// session requires, does not decode messages while it relays them, keeps no passwords and no rows, and does not call
// cgo. It does not depend on how captured queries are used. In: connections. Out: the same bytes to the other side,
// capture.Query values to a Sink, and Stats.
//
//	client                         proxy                           engine
//	  |-- SSLRequest ---------------->|                                |
//	  |<------------------------- N --|   (GSSENCRequest likewise)     |
//	  |   or S, and TLS begins        |   with TLS to the engine:      |
//	  |                               |-- SSLRequest, S, TLS --------->|
//	  |-- StartupMessage ------------>|-- the same bytes ------------->|
//	  |<== authentication, both ways, unchanged and not recorded =====>|
//	  |<------------------------------|<-- ParameterStatus, -----------|   noted: encoding, string syntax
//	  |                               |    ReadyForQuery               |   noted: the tracker starts
//	  |-- Query "SELECT ..." -------->|-- the same bytes ------------->|
//	  |                               |...> tap: Query, with its text  |
//	  |<------------------------------|<-- RowDescription, DataRow* ---|   skipped by their length
//	  |<------------------------------|<-- CommandComplete ------------|
//	  |                               |...> tap: time, CommandComplete |
//	  |<------------------------------|<-- ReadyForQuery --------------|
//	  |                               |...> tap: ReadyForQuery         |
//	  |                      every 50 ms: drainer                      |
//	  |                      tracker pairs -> Sink.Offer(query)        |
//	  |-- Parse, Bind, Execute, Sync->|-- the same bytes ------------->|   likewise, by name and portal
//	  |-- EOF ----------------------->|-- EOF ------------------------>|   one direction; the other continues
//	  |<----------------------- EOF --|<------------------------- EOF--|
//
//	  |-- CancelRequest ------------->|-- the same bytes, on a new --->|
//	  |<----------------------- EOF --|<--- connection ---------- EOF--|
//
// With TLS, the proxy terminates it separately on each leg (its connections to the client and to the engine), or passes
// it through; then nothing is captured. The relay changes no byte, with one exception: if the engine's leg uses TLS and
// the client's does not, SCRAM-SHA-256-PLUS is removed from the mechanisms that the engine offers (internal/startup).
//
// On Linux, a session with plain sockets on both sides moves to an event loop after its StartupMessage: one thread that
// relays many sessions with epoll and bypasses Go's scheduler (internal/relay). Other sessions use two goroutines. Both
// do the same: read a chunk from one side, write the same bytes to the other, and only then look at the message headers
// in it. The few bodies that matter are copied into a bounded buffer. No message wakes a goroutine: one goroutine for
// the whole server polls the buffers and runs the trackers. An invalid message or a panic in the tracker stops the
// capture of that session, and a full buffer interrupts it until the server has answered everything that the client
// sent. Both are counted; the traffic continues.
//
// If the engine closes its connection, often after an error message, the session continues until everything that the
// engine has sent has reached the client. What the client sends meanwhile is discarded.
package proxy
