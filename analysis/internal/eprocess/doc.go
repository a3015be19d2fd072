// Package eprocess holds the parts of a bet: the hypothesis that is bet against, the projection of a working
// alternative on it, the mixture of alternatives, and the grid of epsilons. It reads no results and keeps no state.
package eprocess
