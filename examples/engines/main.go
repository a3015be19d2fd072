// Command engines audits released engines of differential privacy, and compares what is found with what is expected.
//
// Each folder of examples/engines is an engine: requirements-VERSION.txt, an adapter (functions in PL/Python, or a child
// of examples/gateway), data, a configuration of dpwatch, and queries with the expected verdicts. For each version this
// program makes a virtual environment, starts a temporary PostgreSQL with the engine, or with a gateway beside it, and
// runs dpwatch audit on the queries.
//
//	go run ./examples/engines                                # all; or make engines
//	go run ./examples/engines -engine opendp                 # engines, or versions, with this word in their names
//	go run ./examples/engines -query nanmean                 # queries with this word in their names
//	go run ./examples/engines -serve -engine "opendp 0.12.1" # start its server, print the connection string, and wait
//	go run ./examples/engines -issues docs/issues            # also write the issues for maintainers that faults.sql names
//	go run ./examples/engines -write                         # also write docs/found.md and docs/issues
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/dpwatch/dpwatch/internal/pgtemp"
)

// options are the flags.
type options struct {
	word         string
	serve, write bool
	parallel     int
	auditor      auditor
	binDir, root string
	python       string
}

func main() {
	var o options
	flag.StringVar(&o.word, "engine", "", "only engines and versions whose name contains this word: \"opendp 0.12.1\"")
	flag.StringVar(&o.auditor.word, "query", "", "only queries whose name contains this word")
	flag.BoolVar(&o.serve, "serve", false, "start the server of one engine and wait for Ctrl-C")
	flag.BoolVar(&o.write, "write", false, "write docs/found.md, and docs/issues")
	flag.StringVar(&o.auditor.issues, "issues", "", "write the issues for maintainers that faults.sql names to this directory")
	flag.IntVar(&o.parallel, "parallel", 2, "number of versions that are audited at the same time")
	flag.StringVar(&o.auditor.program, "dpwatch", "bin/dpwatch", "the program")
	flag.IntVar(&o.auditor.limits.honest, "honest-trials", 300, "pairs of trials of a query that is expected to have no violation")
	flag.IntVar(&o.auditor.limits.faulty, "max-trials", 3000, "pairs of trials, at most, until a violation is found")
	flag.IntVar(&o.auditor.limits.measure, "measure", 0, "pairs of trials after a violation, which raise the bound")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, o)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "engines:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, o options) (err error) {
	all, err := engines("examples/engines", o.word)
	if err != nil {
		return err
	}
	if o.write && o.word+o.auditor.word != "" {
		return errors.New("-write needs all queries: leave -engine and -query out")
	}
	if o.write && o.auditor.issues == "" {
		o.auditor.issues = "docs/issues"
	}
	if o.binDir, err = pgtemp.FindBinDir(ctx, pgtemp.Options{}); err != nil {
		return err
	}
	if slices.ContainsFunc(all, func(e engine) bool { return !e.gateway }) {
		o.python, err = plpython(ctx, o.binDir)
	} else {
		o.python, err = anyPython(ctx)
	}
	if err != nil {
		return err
	}
	if o.root, err = readable(); err != nil {
		return err
	}
	if slices.ContainsFunc(all, func(e engine) bool { return e.gateway }) {
		if _, err := output(ctx, "go", "build", "-tags", "netgo,osusergo", "-ldflags=-w", "-o", filepath.Join(o.root, "gateway"), "./examples/gateway"); err != nil {
			return err
		}
	}
	if o.serve {
		if len(all) > 1 || len(all[0].versions) > 1 {
			return errors.New("-serve needs one version: -engine \"opendp 0.12.1\"")
		}
		return o.wait(ctx, all[0], all[0].versions[0])
	}
	began := time.Now()
	results, err := o.audit(ctx, all)
	if err != nil {
		return err
	}
	faults := 0
	for _, r := range results {
		if r.fault != "" {
			faults++
		}
	}
	fmt.Printf("\n%s\n%d queries in %.0f s, %d not as expected\n", table(results), len(results), time.Since(began).Seconds(), faults)
	if o.write {
		if err := writeFound("docs/found.md", results); err != nil {
			return err
		}
	}
	if faults > 0 {
		return errors.New("some queries were not found as expected: see above")
	}
	return nil
}

// start installs a version of an engine and starts its server.
func (o options) start(ctx context.Context, e engine, version string) (*server, error) {
	site, err := packages(ctx, o.root, o.python, e, version)
	if err != nil {
		return nil, err
	}
	return serve(ctx, o, site, e)
}

// wait starts the server of an engine and keeps it until ctx is done.
func (o options) wait(ctx context.Context, e engine, version string) error {
	server, err := o.start(ctx, e, version)
	if err != nil {
		return err
	}
	for _, variable := range server.environ {
		name, value, _ := strings.Cut(variable, "=")
		fmt.Printf("export %s='%s'\n", name, value)
	}
	fmt.Fprintf(os.Stderr, "%s %s is up. In another shell, in %s: the lines above, then the commands of README.md. Ctrl-C stops the server.\n", e.name, version, e.dir)
	<-ctx.Done()
	return server.stop()
}

// audit audits all versions, o.parallel at a time, and returns the results in the order of the engines, versions and
// queries.
func (o options) audit(ctx context.Context, all []engine) ([]result, error) {
	type work struct {
		engine  engine
		version string
		results []result
		err     error
	}
	var works []*work
	for _, e := range all {
		for _, version := range e.versions {
			works = append(works, &work{engine: e, version: version})
		}
	}
	var group sync.WaitGroup
	var printing sync.Mutex
	places := make(chan struct{}, max(o.parallel, 1))
	for _, w := range works {
		group.Go(func() {
			places <- struct{}{}
			defer func() { <-places }()
			var server *server
			if server, w.err = o.start(ctx, w.engine, w.version); w.err != nil {
				return
			}
			w.err = o.auditor.run(ctx, server, w.engine, w.version, func(r result) {
				printing.Lock()
				defer printing.Unlock()
				w.results = append(w.results, r)
				fmt.Println(r.line())
			})
			w.err = errors.Join(w.err, server.stop())
		})
	}
	group.Wait()
	var results []result
	var errs []error
	for _, w := range works {
		results, errs = append(results, w.results...), append(errs, w.err)
	}
	return results, errors.Join(errs...)
}
