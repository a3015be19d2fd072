package pgtemp_test

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/dpwatch/dpwatch/internal/pgtemp"
)

// parentRole makes the test binary start a cluster, print its directory and process id, and wait to be killed.
const parentRole = "DPWATCH_TEST_PARENT"

func TestMain(m *testing.M) {
	if os.Getenv(parentRole) != "" {
		parent()
		return
	}
	m.Run()
}

func parent() {
	c, err := pgtemp.Start(context.Background(), pgtemp.Options{})
	if err != nil {
		fmt.Println("error", err)
		return
	}
	fmt.Println(c.Dir(), c.PID(), os.Geteuid())
	if os.Getenv(parentRole) == "stop" {
		if err := c.Stop(); err != nil {
			fmt.Println("error", err)
		}
		return
	}
	time.Sleep(time.Hour)
}
