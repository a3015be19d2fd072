package findings

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/dpwatch/dpwatch/config"
	"github.com/dpwatch/dpwatch/internal/app/setup"
	"github.com/dpwatch/dpwatch/internal/app/stages"
	"github.com/dpwatch/dpwatch/internal/read"
	"github.com/dpwatch/dpwatch/internal/withheld"
	"github.com/dpwatch/dpwatch/replay/neighbours"
)

// neighbourMembers reads how the units were chosen, by schema. The values of the rules are personal data and returned
// only if they are revealed. unknown says why nothing is known.
func neighbourMembers(ctx context.Context, c config.Config, reveal bool) (members map[string]read.Unit, unknown string) {
	if !c.Neighbours.Configured() {
		return nil, "neighbours.source is not set, so dpwatch did not create the copies"
	}
	o, err := stages.NeighbourOptions(c)
	if err != nil {
		return nil, withheld.Reveal(err)
	}
	ctx, cancel := context.WithTimeout(ctx, setup.CheckTimeout)
	defer cancel()
	_, list, err := neighbours.List(ctx, o)
	switch {
	case errors.Is(err, neighbours.ErrNoSet):
		return nil, "dpwatch neighbours create did not create the copies"
	case err != nil:
		return nil, "the records of the neighbours cannot be read: " + err.Error()
	}
	members = map[string]read.Unit{}
	for _, m := range list {
		rule, value, _ := strings.Cut(m.Why, ": ")
		u := read.Unit{Pseudonym: m.Unit, Rule: rule, Random: strings.HasPrefix(rule, string(neighbours.Random)), Remarks: m.Remarks()}
		if reveal {
			u.Value = fmt.Sprintf("%s, %d rows", value, m.Rows)
		}
		members[m.Schema] = u
	}
	return members, ""
}
