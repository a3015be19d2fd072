package outcome

import "strconv"

// Join returns the outcomes of the statements of a sequence as one outcome. None of them may have failed. One outcome
// alone is returned as it is.
//
// If each has one row, the result is one row with the columns of all, so that scores compare them. Otherwise each row
// of the result is a row of one statement: its number, as text, and its columns in places of their own, with NULL in
// those of the other statements. Columns are named after their statement, "q2.count".
//
// Join is a function of the outcomes alone, so it reveals nothing beyond them, whichever form it takes.
func Join(outcomes []Outcome) Outcome {
	if len(outcomes) == 1 {
		return outcomes[0]
	}
	single, width := true, 0
	for i := range outcomes {
		single = single && len(outcomes[i].Rows) == 1
		width += len(outcomes[i].Columns)
	}
	o := Outcome{Columns: make([]Column, 0, 1+width)}
	if !single {
		o.Columns = append(o.Columns, Column{Name: "query", Discrete: true})
	}
	for i := range outcomes {
		for _, c := range outcomes[i].Columns {
			o.Columns = append(o.Columns, Column{Name: "q" + strconv.Itoa(i+1) + "." + c.Name, Discrete: c.Discrete, Type: c.Type})
		}
	}
	if single {
		row := make([]Value, 0, width)
		for i := range outcomes {
			row = append(row, outcomes[i].Rows[0]...)
		}
		o.Rows = [][]Value{row}
		return o
	}
	at := 1
	for i := range outcomes {
		for _, from := range outcomes[i].Rows {
			row := make([]Value, 1+width)
			row[0] = Value{Kind: Text, Text: strconv.Itoa(i + 1)}
			copy(row[at:], from)
			o.Rows = append(o.Rows, row)
		}
		at += len(outcomes[i].Columns)
	}
	return o
}
