package oneoff

import (
	"errors"
	"math"
	"slices"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/dpwatch/dpwatch/internal/outcome"
	"github.com/dpwatch/dpwatch/replay"
)

// undoes returns the error that ends the search: nil if err is one of the copies or of their trials, for which the rows
// that were taken away come back.
func undoes(err error) error {
	var server *pgconn.PgError
	var reads *replay.ReadsError
	if errors.As(err, &reads) || errors.As(err, &server) && !slices.Contains([]string{"57", "08", "53", "58"}, server.Code[:min(2, len(server.Code))]) {
		return nil
	}
	return err
}

// kinds are the ways in which answers lack a value, by world, D0 first: an error, no row, NULL, or a number that is not
// finite. Where few rows are left, a sum is NULL, a division fails or a group is missing: a violation, too, and another
// one than that which was found.
type kinds [2]map[string]bool

// add adds the answers of a round. spared marks worlds that it leaves out.
func (k *kinds) add(round replay.Round, spared []bool) {
	for world, answer := range round[:min(len(round), len(k))] {
		if world < len(spared) && spared[world] {
			continue
		}
		for _, kind := range kindsOf(answer) {
			if k[world] == nil {
				k[world] = map[string]bool{}
			}
			k[world][kind] = true
		}
	}
}

func kindsOf(answer outcome.Outcome) (all []string) {
	switch {
	case answer.Failed():
		return []string{"error " + answer.SQLState}
	case len(answer.Rows) == 0:
		return []string{"no row"}
	}
	for _, row := range answer.Rows {
		for _, v := range row {
			switch {
			case v.Kind == outcome.Null:
				all = append(all, "null")
			case v.Kind == outcome.Number && (math.IsNaN(v.Num) || math.IsInf(v.Num, 0)):
				all = append(all, "not finite")
			}
		}
	}
	return all
}

// within reports whether every kind of k is one of other, world by world.
func (k *kinds) within(other *kinds) bool {
	for world := range k {
		for kind := range k[world] {
			if !other[world][kind] {
				return false
			}
		}
	}
	return true
}
