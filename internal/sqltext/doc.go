// Package sqltext scans SQL text without parsing it, as far as a wire proxy needs: it splits a simple query into its
// statements, reports the effect of a statement on the state of its session (settings, transaction block, prepared
// statements), bounds the input of a parser (Check), and hashes texts of the same form (Shape).
//
// It owns a lexer modelled on PostgreSQL's scan.l and the splitting rules of psql. Tables and expressions belong to
// package rewrite. Text goes in, positions and plain values come out; it is pure. It assumes
// standard_conforming_strings = on and an encoding in which bytes below 0x80 are ASCII; the caller checks both. Text
// that PostgreSQL would reject gives some result, never a panic.
package sqltext
