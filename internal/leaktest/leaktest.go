// Package leaktest tells whether tests have left goroutines behind.
package leaktest

import "go.uber.org/goleak"

// Find returns an error that shows the goroutines which are still there after a minute, nil where all have ended: on a
// busy machine they take longer than the second that goleak waits.
func Find() error {
	leak := goleak.Find()
	for range 60 {
		if leak == nil {
			break
		}
		leak = goleak.Find()
	}
	return leak
}
