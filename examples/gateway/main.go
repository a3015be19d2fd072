// Command gateway is an example of a differentially private engine beside the database: it uses the PostgreSQL
// protocol, adds its own noise, and queries a PostgreSQL database. It exists to be audited by dpwatch, not to protect
// data: it has no privacy budget, no authentication, and no TLS.
//
//	gateway -source postgres://reader@localhost/shadow -listen 127.0.0.1:7432 -user id -low 0 -high 100 -epsilon 1
//	psql -h 127.0.0.1 -p 7432 -c 'SELECT dp_count(*), dp_sum(age) FROM people WHERE age > 30'
//
// It answers one SELECT of dp_count(*) and dp_sum(column) over one table, with comparisons of columns with constants in
// WHERE. There is no GROUP BY: publishing which groups exist would need another mechanism. A user counts once, and adds
// a value between -low and -high to a sum; -epsilon applies to the whole query and is divided evenly among its
// aggregates.
//
// -broken plants a bug: half-noise (half of the scale that epsilon requires), seeded (the same noise in every answer),
// no-clip (a user counts with all rows and their full values).
package main

import (
	"context"
	"flag"
	"fmt"
	"net"
	"os"
	"os/signal"
	"slices"

	"github.com/jackc/pgx/v5"
)

// engine holds the values of the flags.
type engine struct {
	source    string // connection string
	user      string // the column that identifies the user of a row
	low, high float64
	epsilon   float64 // of one query
	broken    string
}

func main() {
	var e engine
	flag.StringVar(&e.source, "source", "", "connection string of the database with the data")
	flag.StringVar(&e.user, "user", "id", "the column that identifies the user of a row, the same in every table")
	flag.Float64Var(&e.low, "low", 0, "lower bound of a user's contribution to a sum")
	flag.Float64Var(&e.high, "high", 100, "upper bound of a user's contribution to a sum")
	flag.Float64Var(&e.epsilon, "epsilon", 1, "epsilon of one query")
	flag.StringVar(&e.broken, "broken", "none", "a planted bug: none, half-noise, seeded, no-clip")
	listen := flag.String("listen", "127.0.0.1:7432", "host:port to listen on; with port 0 the system chooses the port. The address is printed")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := e.run(ctx, *listen); err != nil {
		fmt.Fprintln(os.Stderr, "gateway:", err)
		stop()
		os.Exit(1) //nolint:gocritic // stop was called
	}
}

func (e engine) check() error {
	switch {
	case !slices.Contains([]string{"none", "half-noise", "seeded", "no-clip"}, e.broken):
		return fmt.Errorf("-broken %q: write none, half-noise, seeded or no-clip", e.broken)
	case !(e.epsilon > 0) || !(e.low <= e.high) || max(-e.low, e.high) <= 0:
		return fmt.Errorf("-epsilon must be above 0, and -low at most -high, not both 0")
	}
	if _, err := pgx.ParseConfig(e.source); err != nil || e.source == "" {
		return fmt.Errorf("-source is not a connection string: write postgres://user@host:port/database")
	}
	return nil
}

// run serves until ctx ends. It prints the address that it listens on.
func (e engine) run(ctx context.Context, listen string) error {
	if err := e.check(); err != nil {
		return err
	}
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
		go e.serve(ctx, conn)
	}
}
