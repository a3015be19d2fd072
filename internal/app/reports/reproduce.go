package reports

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/dpwatch/dpwatch/analysis"
	"github.com/dpwatch/dpwatch/internal/app/findings"
	"github.com/dpwatch/dpwatch/internal/app/oneoff"
	"github.com/dpwatch/dpwatch/internal/app/setup"
	"github.com/dpwatch/dpwatch/internal/app/show"
	"github.com/dpwatch/dpwatch/internal/read"
)

// ManifestOptions are the flags of dpwatch audits reproduce that concern the manifest of a report.
type ManifestOptions struct {
	Path      string // of the manifest or its directory
	PublicKey string // path of the key that it must have been signed with; "" = any
}

// Reproductions are the results for the violations of a manifest. Its JSON form is a contract with scripts.
type Reproductions struct {
	All []findings.Reproduction `json:"reproductions"`
}

// ReproduceManifest reproduces the violations in the manifest of a report. The error joins those of violations that
// could not be reproduced.
func ReproduceManifest(ctx context.Context, env setup.Environment, o findings.ReproduceOptions, from ManifestOptions, progress oneoff.Progress) (Reproductions, error) {
	results := Reproductions{All: []findings.Reproduction{}}
	v, err := openManifest(from.Path, from.PublicKey)
	if err != nil {
		return results, fmt.Errorf("--from %s: %w", from.Path, err)
	}
	if err := warnConfiguration(env, o.Config, &v); err != nil {
		return results, err
	}
	var failed []error
	for _, a := range v.Manifest.Audits {
		if a.Verdict != string(analysis.Violation) || ctx.Err() != nil {
			continue
		}
		lower := math.NaN()
		if a.Lower != nil {
			lower = *a.Lower
		}
		o.ID, o.Former = a.Key, &read.Former{Verdict: a.Verdict, Lower: analysis.Float(lower), Trials: a.Trials}
		r, err := findings.Reproduce(ctx, env, o, progress)
		if err != nil {
			failed = append(failed, err)
			continue
		}
		results.All = append(results.All, r)
	}
	return results, errors.Join(append(failed, ctx.Err())...)
}

// warnConfiguration warns if the configuration of an engine has changed since the report.
func warnConfiguration(env setup.Environment, path string, v *VerifiedReport) error {
	c, _, err := setup.Load(env, path)
	if err != nil {
		return err
	}
	for name, hash := range v.Manifest.Configurations {
		if own, err := setup.EngineOf(c, name); err == nil && setup.ConfigurationHash(own) != hash {
			fmt.Fprintf(env.Stderr, "dpwatch: warning: the configuration of engine %s is not that of the report: the results are about the present one\n", show.Printable(name))
		}
	}
	return nil
}

// Verdict returns the verdict for the exit code: a violation if there is one, otherwise inconclusive if one is.
func (r Reproductions) Verdict() analysis.Verdict {
	verdict := analysis.NoEvidence
	for _, one := range r.All {
		switch one.Verdict {
		case analysis.Violation:
			return analysis.Violation
		case analysis.NoEvidence:
		default:
			verdict = analysis.Inconclusive
		}
	}
	return verdict
}

// Write writes the results as text.
func (r Reproductions) Write(w io.Writer) error {
	confirmed := 0
	for _, one := range r.All {
		if err := one.Write(w); err != nil {
			return err
		}
		if _, err := io.WriteString(w, "\n"); err != nil {
			return err
		}
		if one.Confirmed {
			confirmed++
		}
	}
	_, err := fmt.Fprintf(w, "%d of %d reproduced violations of the manifest are confirmed\n", confirmed, len(r.All))
	return err
}
