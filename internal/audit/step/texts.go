package step

import (
	"strings"

	"github.com/dpwatch/dpwatch/internal/audit/view"
	"github.com/dpwatch/dpwatch/rewrite"
)

// World is one neighbour of D0, with the texts of the query.
type World struct {
	Schema string
	SQL    view.SQLPair
	Steps  [2][]string // of a sequence: the texts of its statements on D0 and on the neighbour
	Twin   []string    // the texts of the statements on the twin of D0, in a control audit on the guard; nil = there is none
}

// Texts are the rules for the texts of queries.
type Texts struct {
	D0    string
	D1    []string
	Twin  string // "" = there is none
	Guard string // a second twin; "" = there is none
	Own   bool   // every world has an engine of its own: statements are replayed unchanged
}

// Worlds returns the neighbours with the texts of a plan, or of a sequence of plans. It parses each text once more for
// verification.
func (x Texts) Worlds(plan *rewrite.Plan, sequence bool) ([]World, error) {
	plans := []*rewrite.Plan{plan}
	if sequence {
		plans = plan.Steps()
	}
	d0, err := x.texts(plans, x.D0)
	if err != nil {
		return nil, err
	}
	var twin []string
	if x.Twin != "" {
		if twin, err = x.texts(plans, x.Twin); err != nil {
			return nil, err
		}
	}
	var worlds []World
	for _, schema := range x.D1 {
		d1, err := x.texts(plans, schema)
		if err != nil {
			return nil, err
		}
		w := World{Schema: schema, Twin: twin, SQL: view.SQLPair{D0: strings.Join(d0, ";\n"), D1: strings.Join(d1, ";\n")}}
		if sequence {
			w.Steps = [2][]string{d0, d1}
		}
		worlds = append(worlds, w)
	}
	return worlds, nil
}

// OfControl returns the rules of control audits, in which the twin is the only neighbour, and the guard is
// the twin.
func (x Texts) OfControl() Texts {
	return Texts{D0: x.D0, D1: []string{x.Twin}, Twin: x.Guard, Own: x.Own}
}

// texts returns the texts of plans for one world.
func (x Texts) texts(plans []*rewrite.Plan, schema string) (texts []string, err error) {
	for _, plan := range plans {
		text := ""
		if x.Own {
			text = plan.Text()
		} else if text, err = plan.For(schema); err != nil {
			return nil, err
		}
		texts = append(texts, text)
	}
	return texts, nil
}
