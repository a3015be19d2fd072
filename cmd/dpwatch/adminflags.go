package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/dpwatch/dpwatch/config"
	"github.com/dpwatch/dpwatch/internal/app/setup"
	"github.com/dpwatch/dpwatch/internal/app/status"
)

// adminFlags are the flags of commands that ask a running dpwatch.
type adminFlags struct {
	config    string
	engine    string
	address   string
	tokenFile string
	timeout   time.Duration
}

// add adds the flags.
func (f *adminFlags) add(cmd *cobra.Command, timeout time.Duration) {
	fs := cmd.Flags()
	fs.StringVarP(&f.config, "config", "c", "", "path of dpwatch.yaml; its section admin has the address")
	fs.StringVar(&f.address, "address", "", "host:port, unix:/path, http://host:port or https://host:port, instead of --config")
	fs.DurationVar(&f.timeout, "timeout", timeout, "time limit for the answer")
	fs.StringVar(&f.tokenFile, "token-file", "", "file with the token to send; default: admin.token_file of --config")
}

// engineFlag adds --engine.
func engineFlag(cmd *cobra.Command, engine *string) {
	cmd.Flags().StringVar(engine, "engine", "", "name of an engine, if the configuration has several (engines)")
}

// target returns the listener to ask: one that is likely to be reachable, chosen by nearest.
func (f *adminFlags) target(env environment, nearest func(string, []config.AdminListener) (status.Target, error)) (status.Target, error) {
	var asked status.Target
	switch {
	case (f.config == "") == (f.address == ""):
		return asked, errors.New("give either --config FILE or --address ADDRESS")
	case f.address != "":
		var err error
		if asked, err = status.ParseTarget(f.address); err != nil {
			return asked, err
		}
	default:
		data, err := setup.ReadFile(f.config)
		if err != nil {
			return asked, err
		}
		listeners, err := config.ParseAdmin(f.config, data, env.Getenv)
		if err != nil {
			return asked, fmt.Errorf("the configuration is not valid:\n%w", err)
		}
		if asked, err = nearest(f.config, listeners); err != nil {
			return asked, err
		}
	}
	if f.tokenFile != "" {
		asked = asked.WithToken(f.tokenFile)
	}
	return asked.ForEngine(f.engine), nil
}

// ledgerOrAdmin returns what load reads from the ledger of --config, or what fetch gets from a running dpwatch.
func ledgerOrAdmin[T any](f *adminFlags, env environment, load func() (T, error), fetch func(status.Target) (T, error)) (none T, err error) {
	if f.config != "" && f.address == "" {
		if f.tokenFile != "" {
			return none, errors.New("--token-file is for --address: with --config the ledger is read directly")
		}
		return load()
	}
	asked, err := f.target(env, status.FetchNearest)
	if err != nil {
		return none, err
	}
	return fetch(asked)
}

// status asks for the status.
func (f *adminFlags) status(ctx context.Context, env environment) (*status.Snapshot, error) {
	asked, err := f.target(env, status.FetchNearest)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, f.timeout)
	defer cancel()
	s, err := status.Fetch(ctx, asked)
	if err != nil {
		return nil, fmt.Errorf("get the status: %w", err)
	}
	return s, nil
}

// writer is a result with a text; its JSON is that of package json.
type writer interface{ Write(io.Writer) error }

// write writes a result as text or as indented JSON.
func write(env environment, v writer, asJSON bool) error {
	if !asJSON {
		return v.Write(env.Stdout)
	}
	encoder := json.NewEncoder(env.Stdout)
	encoder.SetIndent("", "  ")
	return encoder.Encode(v)
}
