package replay

import (
	"fmt"

	"github.com/dpwatch/dpwatch/internal/withheld"
)

// guarded calls f. A panic, which what a server sends may cause in the code that decodes it, becomes an error: the process would
// print its value otherwise, and end.
func guarded(f func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("replay: %w", withheld.Recovered(r))
		}
	}()
	return f()
}
