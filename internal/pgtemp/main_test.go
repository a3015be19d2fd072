package pgtemp_test

import (
	"context"
	"fmt"
	"os"
	"os/signal"
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
	// It handles SIGINT itself: if the tests run in the background of a shell, the signal is ignored from the start.
	interrupted := make(chan os.Signal, 1)
	signal.Notify(interrupted, os.Interrupt)
	select {
	case <-interrupted:
		os.Exit(1)
	case <-time.After(time.Hour):
	}
}
