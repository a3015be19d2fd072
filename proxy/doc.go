// Package proxy relays PostgreSQL sessions between clients and one engine, byte for byte, and emits the statements of the
// clients as captured queries.
//
// It owns the listeners' connections, limits, cancel requests, and shutdown. Inside, startup prepares both legs, relay moves
// the bytes, tap copies the messages that matter, and tracker turns them into queries; wire has what they share. It parses
// SQL only as far as following a session requires, never decodes a message on the traffic path, keeps no passwords and no
// rows, and does not call cgo. It does not depend on how captured queries are used. Bytes go through; capture.Query values
// come out at a Sink; Stats counts.
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
//	  |-- EOF ----------------------->|-- EOF ------------------------>|   one direction; the other goes on
//	  |<----------------------- EOF --|<------------------------- EOF--|
//
//	  |-- CancelRequest ------------->|-- the same bytes, on a new --->|
//	  |<----------------------- EOF --|<--- connection ---------- EOF--|
//
// Where TLS is configured, the proxy terminates it separately on each leg, or passes it through: then bytes are relayed
// unseen and nothing is captured. The relay changes no byte, with one exception: where the engine's leg uses TLS and the
// client's does not, SCRAM-SHA-256-PLUS is removed from the mechanisms that the engine offers (internal/startup).
//
// On Linux, a session with plain sockets on both sides moves to an event loop after its StartupMessage: one thread that
// relays many sessions with epoll and bypasses Go's scheduler (internal/relay). Other sessions use two goroutines. Both do the same:
// read a chunk from one side, write the same bytes to the other, and only then look at the message headers in it. The few
// bodies that matter are copied into a bounded buffer. No message wakes a goroutine: one goroutine for the whole server
// polls the buffers and runs the trackers. A full buffer, an invalid message or a panic in the tracker stops or interrupts
// the capture of that session, which is counted; its traffic goes on. After a full buffer, capture resumes when the server
// has answered everything that the client sent.
//
// A server that breaks its connection has often sent the reason just before. So the session goes on until that has reached
// the client; whatever else the client sends is dropped.
package proxy
