// Package sqltext reads SQL text as far as a wire proxy must: it cuts a simple query into its statements and
// says what a statement does to the state of its session (settings, transaction block, prepared statements).
//
// It owns a lexer after PostgreSQL's scan.l and the splitting rules of psql. It does not parse SQL, knows no
// table and no expression: package rewrite does that, elsewhere. Text goes in, positions and plain values
// come out; it is pure. It assumes standard_conforming_strings = on and an encoding in which bytes below
// 0x80 are ASCII; the caller checks both. Text that PostgreSQL would refuse gives some result, never a panic.
package sqltext
