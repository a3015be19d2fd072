//go:build race

package proxy

// raceEnabled: under the race detector sync.Pool drops buffers at random, so allocations cannot be counted.
const raceEnabled = true
