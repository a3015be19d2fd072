package check

import (
	"context"
	"errors"
	mathrand "math/rand/v2"
	"slices"

	"github.com/dpwatch/dpwatch/config"
	"github.com/dpwatch/dpwatch/internal/app/setup"
	"github.com/dpwatch/dpwatch/internal/app/stages"
	"github.com/dpwatch/dpwatch/internal/outcome"
	"github.com/dpwatch/dpwatch/internal/pg/ident"
	"github.com/dpwatch/dpwatch/internal/preflight"
	"github.com/dpwatch/dpwatch/internal/sqlstate"
	"github.com/dpwatch/dpwatch/internal/withheld"
	"github.com/dpwatch/dpwatch/replay"
)

// countStatement counts the rows of the first protected table, on all copies. An engine for each copy finds the table
// by its search path.
func countStatement(c config.Config) (s replay.Statement) {
	table := ident.ParseTable(c.Privacy.Protected[0])
	for _, schema := range c.Shadow.Copies() {
		name := ident.Quote(table.Name)
		if !c.Shadow.OwnEngines() {
			name = ident.Quote(schema, table.Name)
		}
		s.Worlds = append(s.Worlds, "SELECT count(*) FROM "+name)
	}
	return s
}

// checkEngineReads runs a statement through an engine beside the database, and checks that its trials read the copies of
// their world and no others.
func checkEngineReads(ctx context.Context, c config.Config, s replay.Statement) []preflight.Check {
	if !c.Shadow.Beside() {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, setup.CheckTimeout)
	defer cancel()
	check := preflight.Check{Name: "shadow.engine.dsn", Object: "which copies it reads", Status: preflight.OK, Message: "trials of each world read the copies of that world, and no others"}
	unchecked := func(message string) []preflight.Check {
		check.Status, check.Message = preflight.Unchecked, message
		return []preflight.Check{check}
	}
	unanswered := func(why string) []preflight.Check {
		return unchecked("the engine does not answer the statement that was tried: " + why + "; send queries through the proxy, and run dpwatch doctor again")
	}
	player, err := replay.New(stages.ReplayOptions(c, nil))
	if err != nil {
		return unchecked(sqlstate.Withhold(err).Error())
	}
	run, err := player.Start(s, mathrand.Uint64())
	if err != nil {
		return unchecked(sqlstate.Withhold(err).Error())
	}
	defer run.Close()
	rounds, err := run.Rounds(ctx, 1)
	if err != nil {
		return unanswered(sqlstate.Withhold(err).Error())
	}
	for _, round := range rounds {
		if i := slices.IndexFunc(round, func(o outcome.Outcome) bool { return o.Failed() }); i >= 0 {
			return unanswered("SQLSTATE " + round[i].SQLState)
		}
	}
	reads, err := run.Reads(ctx)
	var wrong *replay.ReadsError
	switch {
	case errors.As(err, &wrong):
		check.Status, check.Message = preflight.Fault, withheld.Reveal(err)
	case err != nil:
		return unchecked(sqlstate.Withhold(err).Error())
	case reads.Unverified != "":
		return unchecked(reads.Unverified)
	}
	return []preflight.Check{check}
}
