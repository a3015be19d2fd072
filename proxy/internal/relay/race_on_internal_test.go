//go:build race

package relay

// raceEnabled: with the race detector sync.Pool drops buffers at random, so allocations cannot be counted.
const raceEnabled = true
