package build

import (
	"fmt"
	"sync/atomic"

	"github.com/dpwatch/dpwatch/internal/pg/ident"
	"github.com/dpwatch/dpwatch/replay/neighbours/internal/source"
	"github.com/dpwatch/dpwatch/replay/neighbours/internal/spec"
)

// staging names the schemas of a set until it is put in place.
type staging struct {
	options *spec.Options
	epoch   int64 // 0 = a dry run, which has no record
}

// stage returns the staging name of world i: 0 = D0, then the neighbours, then the twin, then the guard.
func (s *staging) stage(i int) string {
	return fmt.Sprintf("%s%d_%d", s.options.Prefixes()[0], s.epoch, i)
}

// final returns the final name of world i, which is the staging name of a copy that is made anew.
func (s *staging) final(i int) string {
	if s.options.Recreate {
		return s.stage(i)
	}
	return s.options.Schemas()[i]
}

// work returns the staging name of the schema of work tables.
func (s *staging) work() string { return fmt.Sprintf("%s%d_work", s.options.Prefixes()[0], s.epoch) }

// in returns the name of the copy of a relation in a world.
func (s *staging) in(world int, r *source.Relation) string {
	return ident.Quote(s.stage(world), r.Copy)
}

// gone returns the name of the work table of the rows that belong to units.
func (s *staging) gone() string { return ident.Quote(s.work(), "gone") }

// progress counts the rows that are written for the set.
type progress struct {
	options *spec.Options
	total   int64        // an estimate
	done    atomic.Int64 // by all workers
}

// report reports that a step is in progress.
func (p *progress) report(step string) { p.options.ReportProgress(step, p.done.Load(), p.total) }
