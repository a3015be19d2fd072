package replay

import (
	"fmt"

	"github.com/dpwatch/dpwatch/internal/withheld"
)

// guarded calls f and turns a panic into an error: unexpected data from a server can make the decoding code panic, which
// would print the value and end the process.
func guarded(f func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("replay: %w", withheld.Recovered(r))
		}
	}()
	return f()
}
