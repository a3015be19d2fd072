package app

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/dpwatch/dpwatch/config"
	"github.com/dpwatch/dpwatch/internal/pg/ident"
	"github.com/dpwatch/dpwatch/replay/neighbours"
	"github.com/dpwatch/dpwatch/rewrite"
)

// NeighbourOptions translates the configuration to the options of package neighbours.
func NeighbourOptions(c config.Config) (neighbours.Options, error) {
	n := c.Neighbours
	table := ident.ParseTable
	column := func(name string) neighbours.Column {
		i := strings.LastIndexByte(name, '.')
		return neighbours.Column{Table: table(name[:i]), Name: name[i+1:]}
	}
	o := neighbours.Options{
		Source: n.Source.Reveal(), Target: n.Target.Reveal(), Control: n.ControlSchema, D0: c.Shadow.D0, D1: c.Shadow.D1,
		Unit:       neighbours.Unit{Table: table(c.Privacy.Unit.Table), Key: c.Privacy.Unit.Key},
		SearchPath: c.Privacy.SearchPath, FunctionPath: c.Shadow.SearchPath,
		Relation: neighbours.Relation(n.Relation), Method: neighbours.Method(n.Method), CopyLimit: int64(n.CopyLimit),
		Grant: n.Grant, Workers: n.Workers, RenameBody: rewrite.RenameBody,
	}
	for _, name := range c.Privacy.Protected {
		o.Protected = append(o.Protected, table(name))
	}
	for _, name := range c.Privacy.Public {
		o.Public = append(o.Public, table(name))
	}
	for _, p := range c.Privacy.Paths {
		o.Paths = append(o.Paths, neighbours.Path{Table: table(p.Table), Columns: p.Columns, To: table(p.To), On: p.On})
	}
	for _, x := range n.Choose {
		choice := neighbours.Choice{Rule: neighbours.Rule(x.Rule), K: x.K, Seed: int64(x.Seed)}
		for _, name := range x.Columns {
			choice.Columns = append(choice.Columns, column(name))
		}
		o.Choose = append(o.Choose, choice)
	}
	for _, m := range n.Measures {
		text := func(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }
		o.Measures = append(o.Measures, neighbours.Measure{Column: column(m.Column), Low: text(m.Low), High: text(m.High)})
	}
	replay, err := pgx.ParseConfig(c.Shadow.DSN.Reveal())
	if err != nil {
		return o, fmt.Errorf("shadow.dsn is not a connection string")
	}
	if o.Target == "" {
		o.Target = c.Shadow.DSN.Reveal()
	}
	target, err := pgx.ParseConfig(o.Target)
	if err != nil {
		return o, fmt.Errorf("neighbours.target is not a connection string")
	}
	if target.Database != replay.Database {
		return o, fmt.Errorf("neighbours.target is database %s and shadow.dsn is database %s: both must be the shadow database", target.Database, replay.Database)
	}
	if len(o.Grant) == 0 && target.User != replay.User {
		o.Grant = []string{replay.User}
	}
	return o, nil
}
