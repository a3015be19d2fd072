package main

import (
	"encoding/json"
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/dpwatch/dpwatch/internal/app/setup"
)

// version overrides the version of the main module in setup.Version. A build sets it with -ldflags "-X
// main.version=v1.2.3".
var version = ""

func init() {
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		setup.Version = info.Main.Version
	}
	if version != "" {
		setup.Version = version
	}
}

func versionCommand(env environment) *cobra.Command {
	cmd := &cobra.Command{Use: "version", Short: "Print the version", Args: cobra.NoArgs}
	asJSON := outputFlag(cmd)
	cmd.RunE = func(*cobra.Command, []string) error {
		if asJSON() {
			return json.NewEncoder(env.Stdout).Encode(map[string]string{
				"version": setup.Version, "go": runtime.Version(), "platform": platform,
			})
		}
		_, err := fmt.Fprintln(env.Stdout, versionLine())
		return err
	}
	return cmd
}

const platform = runtime.GOOS + "/" + runtime.GOARCH

// versionLine returns the output of dpwatch version and --version.
func versionLine() string {
	return fmt.Sprintf("dpwatch %s %s %s", setup.Version, runtime.Version(), platform)
}
