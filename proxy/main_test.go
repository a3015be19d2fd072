package proxy_test

import (
	"errors"
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"
)

// TestMain stops the servers that tests may have started, then checks that no test has left a goroutine.
func TestMain(m *testing.M) {
	code := m.Run()
	err := errors.Join(postgres.stop(), postgres18.stop())
	if code == 0 {
		leak := goleak.Find() // which waits for about a second
		for range 60 {
			if leak == nil {
				break
			}
			leak = goleak.Find()
		}
		err = errors.Join(err, leak)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = max(code, 1)
	}
	os.Exit(code)
}
