// Package sqltext reads SQL text without parsing it, as far as a wire proxy must: it cuts a simple query into its
// statements, says what a statement does to the state of its session (settings, transaction block, prepared statements),
// bounds what a parser may be given (Check), and says which texts have one form (Shape).
//
// It owns a lexer after PostgreSQL's scan.l and the splitting rules of psql. It knows no table and no expression: package
// rewrite does that. Text goes in, positions and plain values come out; it is pure. It assumes
// standard_conforming_strings = on and an encoding in which bytes below 0x80 are ASCII; the caller checks both. Text that
// PostgreSQL would refuse gives some result, never a panic.
package sqltext
