package oneoff

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/dpwatch/dpwatch/config"
	"github.com/dpwatch/dpwatch/internal/app/setup"
	"github.com/dpwatch/dpwatch/internal/app/stages"
	"github.com/dpwatch/dpwatch/internal/capture"
	"github.com/dpwatch/dpwatch/internal/curve"
	"github.com/dpwatch/dpwatch/replay"
)

// Options are the flags of dpwatch audit; the fields are named after them.
type Options struct {
	DSN, D0, From, SQL, File   string
	Twin                       string // schema of a second copy of D0; "" = there is none
	Protocol                   string
	Engines                    []string
	D1, SearchPath, Params     []string
	Then                       []string // statements after SQL in the same session; --sql gives them all
	Composition                string   // "max" or "sum"; of the claims of SQL and Then
	Epsilon, Delta, Confidence float64
	Curve                      curve.Curve // instead of Epsilon and Delta, which are its headline; "" = none
	MaxTrials                  int         // 0 = by the claim
	Timeout                    time.Duration
	Hoist                      bool
	Config, Plot               string
	EngineName                 string // of several engines of Config
	Deterministic              string
	FloatingPoint              string
	VaryText                   bool
	Measure                    int
	Timing                     int
	Recreate                   bool
	Shrink                     bool
	ShowRows                   bool            // Shrink may show the rows of small copies
	Issue                      bool            // keep what an issue for the maintainers of the engine shows
	Given                      map[string]bool // flags on the command line; they override Config
}

// question is what is audited: flags, and what stands in place of those that were not given.
type question struct {
	Options
	config   *config.Config // nil = none
	captured *capture.Query // replayed instead of SQL or File; nil = none
}

// load returns the question of flags.
func (o Options) load(env setup.Environment) (question, error) {
	q := question{Options: o}
	if o.Config != "" {
		c, _, err := setup.Load(env, o.Config)
		if err != nil {
			return q, err
		}
		if c, err = c.ForEngine(o.EngineName); err != nil {
			return q, fmt.Errorf("%s: %w (--engine-name NAME)", o.Config, err)
		}
		q.config = &c
	}
	return q, q.resolve()
}

// about returns the question of flags about a captured query.
func (o Options) about(c *config.Config, captured *capture.Query) (question, error) {
	o.From, o.Protocol = "public", "captured"
	q := question{Options: o, config: c, captured: captured}
	return q, q.resolve()
}

// resolve fills in flags that were not given and validates all.
func (f *question) resolve() error {
	if f.config != nil {
		f.fill()
	}
	return f.validate()
}

// fill takes values from the configuration for flags that were not given.
func (f *question) fill() {
	c := f.config
	set := func(name string, take func()) {
		if !f.Given[name] {
			take()
		}
	}
	set("dsn", func() { f.DSN = c.Shadow.DSN.Reveal() })
	set("d0", func() { f.D0 = c.Shadow.D0 })
	set("d1", func() { f.D1 = c.Shadow.D1 })
	set("search-path", func() { f.SearchPath = c.Shadow.SearchPath })
	set("confidence", func() { f.Confidence = c.Audit.Confidence })
	set("max-trials", func() { f.MaxTrials = c.Audit.MaxTrials })
	set("composition", func() { f.Composition = c.Audit.SequenceComposition })
	set("statement-timeout", func() { f.Timeout = time.Duration(c.Shadow.StatementTimeout) })
	set("deterministic", func() { f.Deterministic = c.Audit.Deterministic })
	set("floating-point", func() { f.FloatingPoint = c.Audit.FloatingPoint })
	set("vary-text", func() { f.VaryText = c.Audit.Confirm.VaryText })
	set("hoist", func() { f.Hoist = c.Audit.Hoist })
	if c.Shadow.Engine.Protocol != "captured" {
		set("protocol", func() { f.Protocol = c.Shadow.Engine.Protocol })
	}
	if !f.Given["d0"] && !f.Given["engine"] && !f.Recreate { // otherwise the configured twin is one of other data, or has no engine
		set("twin", func() { f.Twin = c.Shadow.TwinSchema() })
	}
	set("engine", func() { f.Engines = c.Shadow.Engines(f.withTwin()) })
}

// withTwin returns the schemas of the copies and that of the twin, if there is one.
func (f *question) withTwin() []string {
	if f.Twin == "" {
		return f.schemas()
	}
	return append(f.schemas(), f.Twin)
}

// schemas returns the schemas of the copies, D0 first, without the twin.
func (f *question) schemas() []string { return append([]string{f.D0}, f.D1...) }

func (f *question) validate() error {
	if f.Recreate {
		if err := f.recreatable(); err != nil {
			return err
		}
	}
	if f.Shrink {
		if err := f.shrinkable(); err != nil {
			return err
		}
	}
	var missing []string
	for name, there := range map[string]bool{"dsn": f.DSN != "", "d0": f.D0 != "", "d1": len(f.D1) > 0, "epsilon": f.config != nil || f.Given["epsilon"]} {
		if !there {
			missing = append(missing, "--"+name)
		}
	}
	slices.Sort(missing)
	switch {
	case f.Given["sql"] == f.Given["file"]:
		return errors.New("give the query either with --sql or with --file (- for standard input)")
	case len(f.Then) >= maxSequence:
		return fmt.Errorf("--sql is given %d times: a sequence has at most %d queries", 1+len(f.Then), maxSequence)
	case len(f.Then) > 0 && len(f.Params) > 0:
		return errors.New("--param belongs to one query, and --sql is given several times: write the values into the queries")
	case len(missing) > 0:
		return fmt.Errorf("%s missing: give these flags, or --config FILE", strings.Join(missing, ", "))
	case !(f.Epsilon >= 0) || math.IsInf(f.Epsilon, 0):
		return fmt.Errorf("--epsilon %g: must be a finite number, at least 0", f.Epsilon)
	case !(f.Delta >= 0 && f.Delta < 1):
		return fmt.Errorf("--delta %g: must be at least 0 and less than 1", f.Delta)
	case !(f.Confidence > 0.5 && f.Confidence < 1):
		return fmt.Errorf("--confidence %g: must be more than 0.5 and less than 1, for example 0.95", f.Confidence)
	case f.MaxTrials < 0:
		return fmt.Errorf("--max-trials %d: must not be negative; 0 = by the claim", f.MaxTrials)
	case f.Measure < 0:
		return fmt.Errorf("--measure %d: must not be negative; 0 = none", f.Measure)
	case f.Timing < 0:
		return fmt.Errorf("--timing %d: must not be negative; 0 = none", f.Timing)
	case f.Timing > 0 && len(f.Then) > 0:
		return errors.New("--timing is for one query, and --sql is given several times")
	case f.Timeout <= 0:
		return fmt.Errorf("--statement-timeout %s: must be more than 0", f.Timeout)
	case f.config != nil && f.config.Shadow.OwnEngines() && !f.Given["engine"] && len(f.Engines) != len(f.withTwin()):
		return errors.New("shadow.engine.dsn has no engine for one of --d0 and --d1: add it there, or give --engine")
	case len(f.Engines) > 1 && len(f.Engines) != len(f.withTwin()):
		return fmt.Errorf("--engine is given %d times: give one for all copies, or one for D0, one for each --d1 and one for --twin, if there is one (%d)", len(f.Engines), len(f.withTwin()))
	case f.Twin != "" && slices.Contains(f.schemas(), f.Twin):
		return fmt.Errorf("--twin %s is also --d0 or a --d1: the twin is a separate schema with the rows of D0", f.Twin)
	}
	for i, schema := range f.D1 {
		switch {
		case schema == "":
			return errors.New("--d1 contains an empty name: separate the names of schemas with commas")
		case schema == f.D0:
			return fmt.Errorf("--d1 %s is the schema of D0: a neighbour must be another schema", schema)
		case slices.Index(f.D1, schema) < i:
			return fmt.Errorf("--d1 %s is given twice", schema)
		}
	}
	return nil
}

// replayOptions returns the options of dpwatch run if there is a configuration, defaults otherwise, overridden by the
// flags.
func (f *question) replayOptions() replay.Options {
	o := replay.Options{ConnectTimeout: 10 * time.Second, MaxRows: 100_000, MaxBytes: 64 << 20}
	if f.config != nil {
		o = stages.ReplayOptions(*f.config, nil)
	}
	if o.Originals == nil || f.Given["from"] {
		o.Originals = []string{f.From}
	}
	o.DSN, o.SearchPath, o.StatementTimeout = f.DSN, f.SearchPath, f.Timeout
	o.Engines, o.Copies, o.Twin, o.Protocol = f.Engines, f.schemas(), f.Twin, replay.Protocol(f.Protocol)
	return o
}
