package power

import (
	"bufio"
	"context"
	_ "embed"
	"encoding/binary"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"time"

	"github.com/dpwatch/dpwatch/analysis"
)

// peersScript reads the same samples with other testers. It documents how each is used.
//
//go:embed peers.py
var peersScript string

// tester is a column.
type tester struct{ key, name string }

// testers are dpwatch and the others, in the order of the columns.
var testers = []tester{
	{"dpwatch", "dpwatch"},
	{"statdp", "StatDP (pystatdp 0.1.3.1)"},
	{"smartnoise", "evaluator of opendp-smartnoise 0.1.4.2"},
	{"estimates", "privacy-estimates 0.1.0"},
}

// fixedBudget is dpwatch's bound for a number of pairs that was fixed beforehand, as the others have it.
var fixedBudget = tester{"fixed", "dpwatch, fixed budget"}

// comparedWrong are mechanisms that leak more than they claim and whose answers all testers can read: numbers, or few
// values, in few columns.
func comparedWrong() []string {
	return []string{
		"Laplace, claim 1, true 4", "Laplace, claim 1, true 2", "Laplace, claim 1, true 1.5", "Laplace, claim 0.1, true 0.5", "Gaussian for (1, 1e-5), noise halved",
		"two-sided geometric, claim 1, true 1.5", "4-ary response, claim 1, true 1.5", "noisy max that gives the value away (RNM3), claim 1, true 2.5",
		"exponential mechanism without the factor 2, claim 1, true 1.8", "sparse vector, little noise on queries (SVT4), claim 1, true 1.75",
		"sparse vector without noise on queries (SVT5), claim 1", "noise truncated at 3 scales, claim 1", "naive floating-point Laplace, claim 1",
		"noise rounded before it is added, claim 1", "one noise for two columns, claim 1",
	}
}

// comparedRight are mechanisms that keep their claim.
func comparedRight() []string {
	return []string{
		"Laplace 1", "Gaussian (1, 1e-5)", "two-sided geometric 1", "4-ary response 1", "noisy max 1", "sparse vector 1 (SVT1)",
		"exponential mechanism 1 (11 candidates: true 0.91)",
	}
}

// comparedSizes are the numbers of pairs after which the others have a verdict; dpwatch has one after every pair.
func comparedSizes(most int) (sizes []int) {
	for _, n := range []int{10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000, 20_000, 50_000, 100_000} {
		if n <= most {
			sizes = append(sizes, n)
		}
	}
	return sizes
}

// task is what the script reads, for one sample.
type task struct {
	Files   [2]string `json:"files"`
	Columns int       `json:"columns"`
	Epsilon float64   `json:"epsilon"`
	Delta   float64   `json:"delta"`
	Sizes   []int     `json:"sizes"`
	Bounds  []int     `json:"bounds"`
}

// reading is what a tester finds in a sample.
type reading struct {
	Found   []bool    `json:"found"`  // after each of the sizes
	Bounds  []float64 `json:"bounds"` // lower bounds of epsilon
	Seconds float64   `json:"seconds"`
}

// Peers compares dpwatch with other testers on the same samples, and prints tables in markdown.
func Peers(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("peers", flag.ContinueOnError)
	python := flags.String("python", "python3", "Python with the packages of bench/power/peers.txt")
	runs := flags.Int("runs", 10, "samples of each mechanism")
	boundRuns := flags.Int("bound-runs", 3, "of them, those with lower bounds, whose median is shown")
	most := flags.Int("pairs", 100_000, "pairs of trials in a sample")
	seed := flags.Uint64("seed", 50_000, "first seed")
	cells := flags.String("cells", ".", "regular expression: only the mechanisms with such a name")
	if err := flags.Parse(args); err != nil {
		return err
	}
	only, err := regexp.Compile(*cells)
	if err != nil {
		return fmt.Errorf("-cells: %w", err)
	}
	if *runs < 1 || *boundRuns < 0 || *most < 10 {
		return errors.New("-runs must be at least 1, -bound-runs at least 0, -pairs at least 10")
	}
	dir, err := os.MkdirTemp("", "dpwatch-peers-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	script := filepath.Join(dir, "peers.py")
	if err := os.WriteFile(script, []byte(peersScript), 0o600); err != nil {
		return err
	}
	others, err := startPeers(ctx, *python, script)
	if err != nil {
		return err
	}
	defer others.stop()
	c := comparison{others: others, dir: dir, runs: *runs, boundRuns: *boundRuns, most: *most, sizes: comparedSizes(*most), seed: *seed}
	for _, part := range []struct {
		names    []string
		families []family
		write    func(io.Writer, []compared, *comparison)
	}{{comparedWrong(), wrong(), writeFound}, {comparedRight(), right(), writeAlarms}} {
		var all []compared
		for _, name := range part.names {
			if !only.MatchString(name) {
				continue
			}
			i := slices.IndexFunc(part.families, func(f family) bool { return f.name == name })
			if i < 0 {
				return fmt.Errorf("no mechanism is named %q", name)
			}
			one, err := c.compare(part.families[i])
			if err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			all = append(all, one)
		}
		part.write(os.Stdout, all, &c)
	}
	return nil
}

// peers is the running script.
type peers struct {
	command *exec.Cmd
	in      io.WriteCloser
	out     *bufio.Reader
}

func startPeers(ctx context.Context, python, script string) (*peers, error) {
	p := &peers{command: exec.CommandContext(ctx, python, script)}
	p.command.Stderr = os.Stderr
	in, err := p.command.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := p.command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	p.in, p.out = in, bufio.NewReader(out)
	return p, p.command.Start()
}

func (p *peers) stop() {
	_ = p.in.Close()
	_ = p.command.Wait()
}

func (p *peers) read(t task) (all map[string]reading, err error) {
	if err := json.NewEncoder(p.in).Encode(t); err != nil {
		return nil, fmt.Errorf("the script of the other testers has ended: install the packages of bench/power/peers.txt (make bench-peers does): %w", err)
	}
	line, err := p.out.ReadBytes('\n')
	if err != nil {
		return nil, fmt.Errorf("the script of the other testers has ended: install the packages of bench/power/peers.txt (make bench-peers does): %w", err)
	}
	return all, json.Unmarshal(line, &all)
}

// comparison has the settings of a run.
type comparison struct {
	others                *peers
	dir                   string
	runs, boundRuns, most int
	sizes                 []int
	seed                  uint64
}

// compared is what the testers found in the samples of one mechanism.
type compared struct {
	family
	at       []int                // dpwatch: pairs to the violation, ascending; most+1 = none
	readings map[string][]reading // by tester, one for each sample
}

func (c *comparison) compare(f family) (compared, error) {
	all := compared{family: f, readings: map[string][]reading{}}
	for run := range c.runs {
		t := task{Epsilon: f.claim.Epsilon, Delta: f.claim.Delta, Sizes: c.sizes, Bounds: []int{}}
		if run < c.boundRuns {
			t.Bounds = boundSizes(c.most)
		}
		own, fixed, at, err := c.sample(f, c.seed+uint64(run), &t)
		if err != nil {
			return all, err
		}
		found, err := c.others.read(t)
		if err != nil {
			return all, err
		}
		found["dpwatch"], found[fixedBudget.key] = own, fixed
		for key, r := range found {
			all.readings[key] = append(all.readings[key], r)
		}
		all.at = append(all.at, at)
	}
	slices.Sort(all.at)
	return all, nil
}

// boundSizes are the numbers of pairs after which lower bounds are compared.
func boundSizes(most int) (sizes []int) {
	for _, n := range []int{10_000, 100_000} {
		if n <= most {
			sizes = append(sizes, n)
		}
	}
	return sizes
}

// sample draws a sample, audits it, and writes it for the others.
func (c *comparison) sample(f family, seed uint64, t *task) (own, fixed reading, at int, err error) {
	r := rand.New(rand.NewPCG(seed, 20240607))
	var worlds [2][]float64
	codes := map[string]float64{}
	pairs := make([][2]analysis.Outcome, c.most)
	for i := range pairs {
		pairs[i][0], pairs[i][1] = f.draw(r)
		for w, o := range pairs[i] {
			t.Columns = len(o.Rows[0])
			worlds[w] = appendNumbers(worlds[w], o, codes)
		}
	}
	for w := range worlds {
		t.Files[w] = filepath.Join(c.dir, fmt.Sprintf("d%d", w))
		if err := writeNumbers(t.Files[w], worlds[w]); err != nil {
			return own, fixed, 0, err
		}
	}
	begin := time.Now()
	a, err := analysis.New(f.claim, analysis.Options{MaxTrials: c.most, Confidence: 1 - alpha})
	if err != nil {
		return own, fixed, 0, err
	}
	for _, p := range pairs {
		if a.Decided() {
			break
		}
		a.Add(p[0], p[1])
	}
	if at = a.DetectedAt(); at == 0 {
		at = c.most + 1
	}
	own.Seconds = time.Since(begin).Seconds()
	for _, n := range c.sizes {
		own.Found = append(own.Found, at <= n)
	}
	for _, n := range t.Bounds {
		b, err := analysis.New(analysis.Claim{Delta: f.claim.Delta}, analysis.Options{NoClaim: true, MaxTrials: n, Confidence: 1 - alpha})
		if err != nil {
			return own, fixed, 0, err
		}
		for _, p := range pairs[:n] {
			b.Add(p[0], p[1])
		}
		r := b.Report()
		own.Bounds = append(own.Bounds, float64(r.EpsilonLower))
		certified := 0.0
		if r.ClopperPearson != nil {
			certified = float64(r.ClopperPearson.Epsilon)
		}
		fixed.Bounds = append(fixed.Bounds, certified)
	}
	return own, fixed, at, nil
}

// appendNumbers appends the columns of an answer of one row as the others read it. Texts are numbered in the order in
// which they appear.
func appendNumbers(xs []float64, o analysis.Outcome, codes map[string]float64) []float64 {
	for _, v := range o.Rows[0] {
		x := v.Num
		if v.Kind != analysis.Number {
			code, known := codes[v.Text]
			if n, err := strconv.Atoi(v.Text); err == nil {
				code = float64(n)
			} else if !known {
				code = float64(len(codes))
				codes[v.Text] = code
			}
			x = code
		}
		xs = append(xs, x)
	}
	return xs
}

func writeNumbers(file string, xs []float64) error {
	b := make([]byte, 0, 8*len(xs))
	for _, x := range xs {
		b = binary.LittleEndian.AppendUint64(b, math.Float64bits(x))
	}
	return os.WriteFile(file, b, 0o600)
}
