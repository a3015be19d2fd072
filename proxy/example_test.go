package proxy_test

import (
	"context"
	"fmt"
	"log"
	"net"
	"os/signal"
	"syscall"

	"github.com/dpwatch/dpwatch/internal/capture"
	"github.com/dpwatch/dpwatch/proxy"
)

// A relay in front of an engine, until SIGTERM. The statements of its clients come out of a bounded queue.
func ExampleServer_Serve() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()

	queue := capture.NewQueue(1024, 16<<20)
	server, err := proxy.New(proxy.Options{
		Upstream: proxy.Address{Network: "tcp", Address: "127.0.0.1:5432"},
		Capture:  true,
		Sink:     queue,
	})
	if err != nil {
		log.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:6432")
	if err != nil {
		log.Fatal(err)
	}
	go func() {
		for {
			q, err := queue.Take(ctx)
			if err != nil {
				return
			}
			fmt.Println(q.User, q.SQL)
		}
	}()
	if err := server.Serve(ctx, listener); err != nil {
		log.Fatal(err)
	}
}
