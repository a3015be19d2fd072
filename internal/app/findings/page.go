package findings

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/dpwatch/dpwatch/config"
	"github.com/dpwatch/dpwatch/internal/app/oneoff"
	"github.com/dpwatch/dpwatch/internal/app/querypage"
	"github.com/dpwatch/dpwatch/internal/app/records"
	"github.com/dpwatch/dpwatch/internal/app/setup"
	"github.com/dpwatch/dpwatch/internal/read"
	"github.com/dpwatch/dpwatch/internal/withheld"
)

// ServePage is the process that reads an audit for a page: it reads a request from standard input and writes the answer
// to standard output.
func ServePage(ctx context.Context, env setup.Environment) error {
	var q querypage.Request
	if err := json.NewDecoder(env.Stdin).Decode(&q); err != nil {
		return errors.New("the command page is internal and started by dpwatch run: use dpwatch explain ID --config FILE")
	}
	c, err := config.DecodeWhole(q.Configuration)
	if err != nil {
		return err
	}
	var a querypage.Answer
	if q.Reproduce {
		quiet := oneoff.Progress{Begin: func(string, int) {}, Add: func(int) {}, End: func() {}}
		_, err = ReproduceWith(ctx, env, c, ReproduceOptions{ID: q.ID, Operator: q.Operator}, quiet)
	} else {
		var d read.Details
		if d, err = ReadDetails(ctx, env, c, q.ID, q.Values, q.Profile); err == nil {
			a.Details = &d
		}
	}
	if err != nil {
		a.Error, a.Absent = withheld.Reveal(err), errors.Is(err, read.ErrNoAudit)
		a.Request = errors.Is(err, records.ErrAmbiguous)
		if !q.Values {
			a.Error = err.Error()
		}
	}
	return json.NewEncoder(env.Stdout).Encode(a)
}
