package proxy_test

import (
	"os"
	"testing"

	"go.uber.org/goleak"
)

// TestMain checks that no test leaves a goroutine, then stops the PostgreSQL that tests may have started.
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		postgres.stop()
		os.Exit(code)
	}))
}
