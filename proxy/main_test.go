package proxy_test

import (
	"errors"
	"fmt"
	"os"
	"testing"

	"github.com/dpwatch/dpwatch/internal/leaktest"
)

// TestMain stops the servers that tests have started, then checks for leaked goroutines.
func TestMain(m *testing.M) {
	code := m.Run()
	err := errors.Join(postgres.stop(), postgres18.stop())
	if code == 0 {
		err = errors.Join(err, leaktest.Find())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = max(code, 1)
	}
	os.Exit(code)
}
