// Command gateway makes an engine of differential privacy a server that uses the PostgreSQL protocol: child processes of
// a program, which may be in any language, answer the queries. README.md has their protocol, and noisy is such a program.
// The gateway exists to be audited by dpwatch, not to protect data: it has no privacy budget, no authentication, and no
// TLS.
//
//	gateway -source postgres://reader@localhost/shadow -listen 127.0.0.1:7432 -engine "python3 child.py"
//	psql -h 127.0.0.1 -p 7432 -c 'SELECT AVG(age) FROM people'
package main

import (
	"context"
	"flag"
	"fmt"
	"net"
	"os"
	"os/signal"
	"strings"
)

func main() {
	source := flag.String("source", "", "connection string of the database with the data, which children find in their variable SOURCE")
	engine := flag.String("engine", "", "the program that answers the queries, and its arguments, divided by spaces")
	children := flag.Int("children", 2, "number of processes of it; each answers one query at a time")
	listen := flag.String("listen", "127.0.0.1:7432", "host:port to listen on; with port 0 the system chooses the port. The address is printed")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, *listen, *source, strings.Fields(*engine), *children)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "gateway:", err)
		os.Exit(1)
	}
}

// run serves until ctx ends. It prints the address that it listens on.
func run(ctx context.Context, listen, source string, command []string, children int) error {
	engine, err := startPool(ctx, command, source, children)
	if err != nil {
		return err
	}
	defer engine.stop()
	listener, err := net.Listen("tcp", listen)
	if err != nil {
		return err
	}
	fmt.Println(listener.Addr())
	context.AfterFunc(ctx, func() { _ = listener.Close() })
	for {
		conn, err := listener.Accept()
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		go serve(ctx, conn, engine)
	}
}
