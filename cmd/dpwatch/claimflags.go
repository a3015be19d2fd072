package main

import (
	"errors"
	"fmt"

	"github.com/spf13/pflag"

	"github.com/dpwatch/dpwatch/internal/curve"
)

// curveFlags adds the flags of a claim that is a curve, and returns what reads it: "" = none is given.
func curveFlags(fs *pflag.FlagSet) func() (curve.Curve, error) {
	mu := fs.Float64("mu", 0, "instead of --epsilon: the claimed mu of Gaussian differential privacy")
	rho := fs.Float64("rho", 0, "instead of --epsilon: the claimed rho of zero-concentrated differential privacy")
	list := fs.String("curve", "", "instead of --epsilon: a curve, mu=0.268, rho=0.5 or points that all hold: \"(0.5,0.004) (1,1e-5)\"")
	return func() (c curve.Curve, err error) {
		given := ""
		for name, read := range map[string]func() (curve.Curve, error){
			curve.Mu:  func() (curve.Curve, error) { return curve.New(curve.Mu, *mu) },
			curve.Rho: func() (curve.Curve, error) { return curve.New(curve.Rho, *rho) },
			"curve":   func() (curve.Curve, error) { return curve.Parse(*list) },
		} {
			if !fs.Changed(name) {
				continue
			}
			if given != "" || fs.Changed("epsilon") || fs.Changed("delta") {
				return "", errors.New("--epsilon with --delta, --mu, --rho and --curve are different claims: give one of them")
			}
			given = name
			if c, err = read(); err != nil {
				err = fmt.Errorf("--%s: %w", name, err)
			}
		}
		return c, err
	}
}
