package outcome

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// Parser parses recorded results one after the other. It reuses what is usually the same in the next result (columns,
// texts, the number of values). It is not safe for concurrent use. The zero value is ready for use.
type Parser struct {
	// Reuse allows the parser to reuse the rows of a result for the next one.
	Reuse bool

	columns  []Column // of the last result set
	values   []Value  // of the last result set, row by row
	rowCount int
	reused   [][]Value // memory for rows
}

// ParseLine parses one recorded result. Results may share their Columns. The forms:
//
//	(empty line)                          no row
//	3.25                                  one row, one number; NaN and Infinity too
//	word                                  one row, one text
//	{"columns":["g","n"],"rows":[["a",1]]}  a result set; columns may be omitted
//	{"error":"22012"}                     the statement failed with this SQLSTATE
//
// A number or a word keeps the blanks around it in its text: they are a part of the answer.
func (r *Parser) ParseLine(line []byte) (Outcome, error) {
	line = bytes.TrimRight(line, "\r\n")
	trimmed := bytes.TrimSpace(line)
	switch {
	case len(trimmed) == 0:
		return Outcome{}, nil
	case trimmed[0] == '{':
		if o, ok := r.fastObject(trimmed); ok {
			return o, nil
		}
		return parseObject(trimmed)
	}
	v := Value{Kind: Text, Text: string(line)}
	if f, ok := ParseNumber(trimmed); ok {
		v.Kind, v.Num = Number, f
	}
	return Outcome{Columns: []Column{{Name: "value", Discrete: v.Kind == Text}}, Rows: [][]Value{{v}}}, nil
}

// ParseNumber parses a number like strconv.ParseFloat, but rejects hexadecimal numbers and underscores. A number out of
// range is infinite.
func ParseNumber[T string | []byte](text T) (float64, bool) {
	if x, n, _ := decimal(text); n > 0 && n == len(text) {
		return x, true
	}
	for i := range len(text) {
		switch c := text[i]; {
		case c == 'x' || c == 'X' || c == '_' || c == 'p' || c == 'P':
			return 0, false
		case i == 0 && (c < '0' || c > '9') && !strings.ContainsRune("+-.iInN", rune(c)):
			return 0, false
		}
	}
	f, err := strconv.ParseFloat(string(text), 64)
	if err != nil && !errors.Is(err, strconv.ErrRange) {
		return 0, false
	}
	return f, true
}

func parseObject(line []byte) (Outcome, error) {
	var in struct {
		Columns []string            `json:"columns"`
		Rows    [][]json.RawMessage `json:"rows"`
		Error   *string             `json:"error"`
	}
	d := json.NewDecoder(bytes.NewReader(line))
	d.DisallowUnknownFields()
	if err := d.Decode(&in); err != nil {
		return Outcome{}, fmt.Errorf(`not {"columns":[..],"rows":[[..],..]} or {"error":"SQLSTATE"}: %w`, err)
	}
	if d.More() {
		return Outcome{}, errors.New("more than one JSON object on the line")
	}
	if in.Error != nil {
		if *in.Error == "" {
			return Outcome{}, errors.New(`"error" is empty: give the SQLSTATE`)
		}
		return Outcome{SQLState: *in.Error}, nil
	}
	return table(in.Columns, in.Rows)
}

func table(names []string, rows [][]json.RawMessage) (Outcome, error) {
	width := len(names)
	if names == nil && len(rows) > 0 {
		width = len(rows[0])
	}
	o := Outcome{Columns: newColumns(names, width)}
	for n, row := range rows {
		if len(row) != width {
			return Outcome{}, fmt.Errorf("row %d has %d values, the result has %d columns", n+1, len(row), width)
		}
		values := make([]Value, width)
		for i, raw := range row {
			values[i] = parseJSON(raw)
			if values[i].Kind == Number && strings.ContainsAny(string(raw), ".eE") {
				o.Columns[i].Discrete = false
			}
		}
		o.Rows = append(o.Rows, values)
	}
	return o, nil
}

// newColumns returns columns without fractions so far; it generates names if names is nil.
func newColumns(names []string, width int) []Column {
	columns := make([]Column, width)
	for i := range columns {
		columns[i].Discrete = true
		if names != nil {
			columns[i].Name = names[i]
		} else {
			columns[i].Name = "column" + strconv.Itoa(i+1)
		}
	}
	return columns
}

// parseJSON parses one JSON value; arrays and objects become their text.
func parseJSON(raw json.RawMessage) Value {
	text := strings.TrimSpace(string(raw))
	switch {
	case text == "null":
		return Value{Kind: Null}
	case text == "true":
		return Value{Kind: Bool, Num: 1}
	case text == "false":
		return Value{Kind: Bool}
	case text[0] == '"':
		var s string
		if json.Unmarshal(raw, &s) != nil {
			s = text
		}
		return nonFinite(s)
	}
	if f, ok := ParseNumber(text); ok {
		return Value{Kind: Number, Num: f, Text: text}
	}
	return Value{Kind: Text, Text: text}
}

// nonFinite parses the numbers that JSON has no literal for and that are written as strings.
func nonFinite(s string) Value {
	switch s {
	case "NaN", "Infinity", "-Infinity":
		f, _ := ParseNumber(s)
		return Value{Kind: Number, Num: f, Text: s}
	}
	return Value{Kind: Text, Text: s}
}
