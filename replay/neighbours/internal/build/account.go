package build

import (
	"context"
	"fmt"

	"github.com/dpwatch/dpwatch/internal/sqlstate"
	"github.com/dpwatch/dpwatch/replay/neighbours/internal/shadow"
	"github.com/dpwatch/dpwatch/replay/neighbours/internal/spec"
	"github.com/dpwatch/dpwatch/replay/neighbours/internal/units"
)

// search finds the columns of the source that name units, and notes those about which nothing is declared.
func (p *planner) search(ctx context.Context) {
	if p.o.Relation != spec.Remove || p.o.Recreate {
		return
	}
	found, err := units.Search(ctx, p.o)
	if err != nil {
		p.o.Notef("the columns that name units were not searched: %v", sqlstate.Withhold(err))
		return
	}
	p.found = found
	m := units.NewMentions(found, p.b.g)
	for _, x := range m.All {
		switch {
		case x.Declared || x.Ignored || x.Parent != p.b.g.Unit && p.b.g.Leads(x.Child):
		case x.Sure:
			p.o.Notef("column %s names units, and nothing is declared about it (%s): %s", x.Column(), x.Evidence(), x.Advice())
		default:
			p.o.Notef("column %s may name units (%s); if it does, %s", x.Column(), x.Evidence(), x.Advice())
		}
	}
	for _, r := range p.b.g.Shared() {
		p.o.Notef("rows of %s may belong to more than two units: most_rows does not count such rows", r.Table)
	}
}

// account counts what each neighbour lacks of others, and where it names its unit, and notes it.
func (b *Builder) account(ctx context.Context) ([]shadow.Account, error) {
	accounts := make([]shadow.Account, len(b.units))
	if b.found == nil {
		return accounts, nil
	}
	m := units.NewMentions(b.found, b.g)
	owned := units.Owned{Graph: b.g, World: b.staging.stage(0), Table: b.staging.gone()}
	for i, u := range b.units {
		b.progress.report("count " + b.staging.final(i+1))
		losses, err := owned.Losses(ctx, b.Conn, u.Number, b.staging.stage(i+1), m)
		if err != nil {
			return nil, fmt.Errorf("count what %s lacks: %w", b.staging.final(i+1), err)
		}
		accounts[i] = units.AccountOf(losses, u.Shared)
		faults, warnings := units.Judge(losses)
		for _, text := range faults {
			b.Options.Notef("fault of %s: %s", b.staging.final(i+1), text)
		}
		for _, text := range append(warnings, (&shadow.Member{Rows: u.Rows, Account: shadow.Account{Shared: u.Shared, Large: accounts[i].Large}}).Remarks()...) {
			b.Options.Notef("%s: %s", b.staging.final(i+1), text)
		}
	}
	return accounts, nil
}
