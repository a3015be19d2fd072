package verify

import (
	"github.com/dpwatch/dpwatch/replay/neighbours/internal/units"
)

// TableLoss is what a neighbour lacks of one table, with its partitions and children, and what it has of the unit.
type TableLoss struct {
	Table     string   `json:"table"`
	Lacks     int64    `json:"lacks"`       // rows of D0
	Others    int64    `json:"only_others"` // of these, rows that name only other persons
	Left      int64    `json:"cells_left"`  // cells that name the unit
	Looked    int      `json:"columns_looked_at"`
	NotLooked []string `json:"columns_not_looked_at"` // with the reason
}

// judge fills the tables, and adds the faults and warnings of what a neighbour lacks and has left.
func (d *Difference) judge(losses []units.Loss, m *units.Mentions) {
	for _, l := range losses {
		t := TableLoss{Table: l.Table.Name, Lacks: l.Rows, Others: l.Others, Looked: len(l.Table.Live()), NotLooked: []string{}}
		for _, u := range m.Unread {
			switch {
			case u.Table.Name != l.Table.Name:
				continue
			case u.Column == "":
				t.Looked = 0
			default:
				t.Looked = max(t.Looked-1, 0)
			}
			t.NotLooked = append(t.NotLooked, map[bool]string{true: u.Why, false: u.Column + " (" + u.Why + ")"}[u.Column == ""])
		}
		for _, left := range l.Left {
			t.Left += left.Cells
		}
		d.Tables = append(d.Tables, t)
	}
	faults, warnings := units.Judge(losses)
	d.Faults, d.Warnings = append(d.Faults, faults...), append(d.Warnings, warnings...)
}
