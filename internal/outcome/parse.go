package outcome

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// ParseLine reads one recorded result. The forms:
//
//	(empty line)                          no row
//	3.25                                  one row, one number; NaN and Infinity too
//	word                                  one row, one text
//	{"columns":["g","n"],"rows":[["a",1]]}  a result set; columns may be left out
//	{"error":"22012"}                     the statement failed with this SQLSTATE
func ParseLine(line []byte) (Outcome, error) {
	text := strings.TrimSpace(string(line))
	switch {
	case text == "":
		return Outcome{}, nil
	case text[0] == '{':
		return parseObject([]byte(text))
	}
	v := Value{Kind: Text, Text: text}
	if f, ok := parseNumber(text); ok {
		v = Value{Kind: Number, Num: f}
	}
	return Outcome{Columns: []Column{{Name: "value", Discrete: v.Kind == Text}}, Rows: [][]Value{{v}}}, nil
}

// parseNumber takes what strconv takes, but not hexadecimal or underscores: those are words.
func parseNumber(text string) (float64, bool) {
	if strings.ContainsAny(text, "xX_pP") {
		return 0, false
	}
	f, err := strconv.ParseFloat(text, 64)
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
	o := Outcome{Columns: make([]Column, width)}
	for i := range o.Columns {
		o.Columns[i] = Column{Name: fmt.Sprintf("column%d", i+1), Discrete: true}
		if names != nil {
			o.Columns[i].Name = names[i]
		}
	}
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

// parseJSON reads one JSON value; arrays and objects are their text.
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
	if f, ok := parseNumber(text); ok {
		return Value{Kind: Number, Num: f}
	}
	return Value{Kind: Text, Text: text}
}

// nonFinite reads the numbers that JSON has no literal for, which are written as strings.
func nonFinite(s string) Value {
	switch s {
	case "NaN", "Infinity", "-Infinity":
		f, _ := parseNumber(s)
		return Value{Kind: Number, Num: f}
	}
	return Value{Kind: Text, Text: s}
}
