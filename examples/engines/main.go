// Command engines audits released engines of differential privacy, and compares what is found with what is expected.
//
// Each folder of examples/engines is an engine: requirements-VERSION.txt, an adapter (functions in PL/Python, or a child
// of examples/gateway), data, a configuration of dpwatch, and queries with the expected verdicts. For each version this
// program makes a virtual environment, starts a temporary PostgreSQL with the engine, or with a gateway beside it, and
// runs dpwatch audit on the queries.
//
//	go run ./examples/engines                                # all; or make engines
//	go run ./examples/engines -engine opendp                 # engines, or versions, with this word in their names
//	go run ./examples/engines -install                       # only install what they need
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
	"maps"
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
	install      bool
	parallel     int
	auditor      auditor
	binDir, root string
	python       string
}

func main() {
	var o options
	flag.StringVar(&o.word, "engine", "", "only engines and versions whose name contains this word: \"opendp 0.12.1\"")
	flag.StringVar(&o.auditor.word, "query", "", "only queries whose name contains this word")
	flag.BoolVar(&o.install, "install", false, "only install what the engines need")
	flag.BoolVar(&o.serve, "serve", false, "start the server of one engine and wait for Ctrl-C")
	flag.BoolVar(&o.write, "write", false, "write docs/found.md, and docs/issues")
	flag.StringVar(&o.auditor.issues, "issues", "", "write the issues for maintainers that faults.sql names to this directory")
	flag.IntVar(&o.parallel, "parallel", 2, "number of versions that are audited at the same time")
	flag.StringVar(&o.auditor.program, "dpwatch", "bin/dpwatch", "the program")
	flag.IntVar(&o.auditor.limits.honest, "honest-trials", 600, "pairs of trials of a query that is expected to have no violation: as many as find twice a claim of 1")
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
	if o.install {
		return o.each(all, func(_ int, e engine, version string) error {
			_, err := packages(ctx, o.root, o.python, e, version)
			return err
		})
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

// each calls a function for all versions of the engines, o.parallel at a time. It begins them in their order: the first,
// diffprivlib, has the most queries, and none of the others takes as long.
func (o options) each(all []engine, do func(index int, e engine, version string) error) error {
	type work struct {
		index   int
		engine  engine
		version string
	}
	queue := make(chan work)
	var group sync.WaitGroup
	var lock sync.Mutex
	var errs []error
	for range max(o.parallel, 1) {
		group.Go(func() {
			for w := range queue {
				if err := do(w.index, w.engine, w.version); err != nil {
					lock.Lock()
					errs = append(errs, err)
					lock.Unlock()
				}
			}
		})
	}
	index := 0
	for _, e := range all {
		for _, version := range e.versions {
			queue <- work{index, e, version}
			index++
		}
	}
	close(queue)
	group.Wait()
	return errors.Join(errs...)
}

// audit audits all versions and returns the results in the order of the engines, versions and queries.
func (o options) audit(ctx context.Context, all []engine) ([]result, error) {
	var printing sync.Mutex
	found := map[int][]result{}
	err := o.each(all, func(index int, e engine, version string) error {
		server, err := o.start(ctx, e, version)
		if err != nil {
			return err
		}
		err = o.auditor.run(ctx, server, e, version, func(r result) {
			printing.Lock()
			defer printing.Unlock()
			found[index] = append(found[index], r)
			fmt.Println(r.line())
		})
		return errors.Join(err, server.stop())
	})
	var results []result
	for _, index := range slices.Sorted(maps.Keys(found)) {
		results = append(results, found[index]...)
	}
	return results, err
}
