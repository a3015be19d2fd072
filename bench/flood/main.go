package flood

import (
	"context"
	"flag"
	"fmt"
	"os"
	"time"
)

// Options say what to send.
type Options struct {
	Program  string // the dpwatch binary
	Texts    int    // distinct texts, of all shapes together
	Shapes   int
	PerText  int     // executions of each text
	Rate     float64 // statements per second; 0 = as fast as the sessions can
	Sessions int
	Workers  int // audit.workers
}

// Run measures with the arguments of the command line, and prints a table in markdown.
func Run(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("flood", flag.ContinueOnError)
	var o Options
	flags.StringVar(&o.Program, "dpwatch", "bin/dpwatch", "the dpwatch binary")
	flags.IntVar(&o.Texts, "texts", 10_000, "distinct texts")
	flags.IntVar(&o.Shapes, "shapes", 20, "shapes of the texts")
	flags.Float64Var(&o.Rate, "rate", 2000, "statements per second")
	flags.IntVar(&o.Sessions, "sessions", 8, "sessions of the clients")
	flags.IntVar(&o.Workers, "workers", 2, "audit.workers")
	minutes := flags.Float64("minutes", 5, "how long; every text is executed equally often")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if o.Texts < o.Shapes || o.Shapes < 1 || o.Sessions < 1 || o.Workers < 1 || !(o.Rate > 0) || !(*minutes > 0) {
		return fmt.Errorf("-texts must be at least -shapes, and all others positive")
	}
	o.PerText = max(1, int(*minutes*60*o.Rate/float64(o.Texts)+.5))
	r, err := Measure(ctx, o)
	if err != nil {
		return err
	}
	r.print(os.Stdout)
	return r.Check()
}

// megabytes formats a number of bytes.
func megabytes(bytes float64) string { return fmt.Sprintf("%.1f MB", bytes/1e6) }

func seconds(d time.Duration) string { return fmt.Sprintf("%.2f s", d.Seconds()) }
