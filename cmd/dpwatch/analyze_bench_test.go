package main

import (
	"bufio"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"testing"
)

// BenchmarkAnalyze runs the whole command on 10,000 trials per dataset, with 200 groups.
func BenchmarkAnalyze(b *testing.B) {
	dir := b.TempDir()
	args := []string{"analyze", "--epsilon", "1", "-o", "json"}
	for w := range 2 {
		path := filepath.Join(dir, fmt.Sprintf("d%d.jsonl", w))
		if err := writeGroups(path, uint64(w), 10_000, 200); err != nil {
			b.Fatal(err)
		}
		args = append(args, fmt.Sprintf("--d%d", w), path)
	}
	for b.Loop() {
		if code := run(b.Context(), args, environment{Stdout: io.Discard, Stderr: os.Stderr, Getenv: os.Getenv}); code == exitFailure {
			b.Fatal("analyze failed")
		}
	}
}

// writeGroups writes trials of a noisy histogram, one JSON object per line. In world 1 the first group is larger by
// one.
func writeGroups(path string, world uint64, trials, groups int) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	out, r := bufio.NewWriter(f), rand.New(rand.NewPCG(world, 1))
	var line []byte
	for range trials {
		line = append(line[:0], `{"columns":["grp","n"],"rows":[`...)
		for g := range groups {
			if g > 0 {
				line = append(line, ',')
			}
			x := 100 + r.ExpFloat64() - r.ExpFloat64()
			if g == 0 {
				x += float64(world)
			}
			line = fmt.Appendf(line, `["g%03d",`, g)
			line = append(strconv.AppendFloat(line, x, 'g', -1, 64), ']')
		}
		_, _ = out.Write(append(line, "]}\n"...)) // Flush returns the error
	}
	if err := out.Flush(); err != nil {
		return err
	}
	return f.Close()
}
