package view

import "github.com/dpwatch/dpwatch/internal/read"

// What is known of one audit, in the words of package read.
type (
	Entry      = read.Audit
	Record     = read.Record
	Neighbour  = read.Neighbour
	SQLPair    = read.SQLPair
	State      = read.State
	WaitingFor = read.WaitingFor
	WatchState = read.WatchState
	Accepted   = read.Accepted
	Standing   = read.Standing
	Resolution = read.Resolution
	Encoding   = read.Encoding
)

// The states of an audit.
const (
	Queued      = read.Queued
	Running     = read.Running
	Unconfirmed = read.Unconfirmed
	Measuring   = read.Measuring
	Waiting     = read.Waiting
	Decided     = read.Decided
)

// States returns every State.
func States() []State { return read.States() }
