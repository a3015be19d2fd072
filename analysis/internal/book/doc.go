// Package book keeps the bets of an audit: which scores have a stake, what is bet in each block of pairs (an epoch),
// and the e-processes that follow from it, one for each epsilon that is tested. It reads tables of counts and no
// results.
package book
