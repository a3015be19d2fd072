package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/dpwatch/dpwatch/internal/app/setup"
	"github.com/dpwatch/dpwatch/internal/app/status"
)

// bundleFile is a file of a bundle, with the command whose output it is.
type bundleFile struct {
	Name     string `json:"name"`
	Command  string `json:"command"`
	ExitCode int    `json:"exit_code"`
	Bytes    int    `json:"bytes"`
	SHA256   string `json:"sha256"`

	text []byte
}

// writeBundle collects what a support request needs in a file.
func writeBundle(ctx context.Context, env environment, config, output string) error {
	text, err := archive(bundleFiles(ctx, env, config), time.Now())
	if err != nil {
		return err
	}
	if err := writeNew(output, string(text)); err != nil {
		return err
	}
	_, err = fmt.Fprintf(env.Stdout, "%s: review it before you send it\n", output)
	return err
}

// bundleFiles returns the output of commands.
func bundleFiles(ctx context.Context, env environment, path string) []bundleFile {
	commands := [][]string{
		{"version.txt", "version"},
		{"configuration.yaml", "config", "print", "--config", path},
		{"doctor.json", "doctor", "-o", "json", "--config", path},
		{"status.txt", "status", "--config", path},
		{"coverage.txt", "coverage", "--config", path},
	}
	if c, _, err := setup.Load(env, path); err == nil && !c.Log.ShowsSQL() {
		commands = append(commands, []string{"audits.txt", "audits", "list", "--config", path}, []string{"alerts.txt", "alerts", "list", "--config", path})
	}
	var files []bundleFile
	for _, args := range commands {
		var stdout, stderr bytes.Buffer
		f := bundleFile{Name: args[0], Command: "dpwatch " + strings.Join(args[1:], " ")}
		f.ExitCode = run(ctx, args[1:], environment{Getenv: env.Getenv, Stdin: strings.NewReader(""), Stdout: &stdout, Stderr: &stderr, Executable: env.Executable, Removes: env.Removes})
		f.text = stdout.Bytes()
		if stderr.Len() > 0 {
			f.text = fmt.Appendf(f.text, "\nstandard error:\n%s", &stderr)
		}
		files = append(files, f)
	}
	return append(files, metricsFile(ctx, env, path))
}

// metricsFile returns the metrics of a running dpwatch.
func metricsFile(ctx context.Context, env environment, path string) bundleFile {
	f := bundleFile{Name: "metrics.txt", Command: "GET /metrics"}
	flags := adminFlags{config: path}
	asked, err := flags.target(env, status.FetchNearest)
	if err == nil {
		ctx, cancel := context.WithTimeout(ctx, statusTimeout)
		defer cancel()
		f.text, err = asked.Get(ctx, "/metrics")
	}
	if err != nil {
		f.ExitCode, f.text = exitFailure, []byte(err.Error()+"\n")
	}
	return f
}

// archive returns files and their list, manifest.json, as a .tar.gz file.
func archive(files []bundleFile, now time.Time) ([]byte, error) {
	var packed bytes.Buffer
	zipped := gzip.NewWriter(&packed)
	w := tar.NewWriter(zipped)
	add := func(name string, text []byte) error {
		err := w.WriteHeader(&tar.Header{Name: "dpwatch-bundle/" + name, Mode: 0o600, Size: int64(len(text)), ModTime: now})
		if err == nil {
			_, err = w.Write(text)
		}
		return err
	}
	for i := range files {
		f := &files[i]
		sum := sha256.Sum256(f.text)
		f.Bytes, f.SHA256 = len(f.text), hex.EncodeToString(sum[:])
		if err := add(f.Name, f.text); err != nil {
			return nil, err
		}
	}
	manifest, err := json.MarshalIndent(map[string]any{"created": now.UTC(), "version": setup.Version, "files": files}, "", "  ")
	if err != nil {
		return nil, err
	}
	err = errors.Join(add("manifest.json", manifest), w.Close(), zipped.Close())
	return packed.Bytes(), err
}
