package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"
)

// sqlMain is an engine without noise: PostgreSQL answers, each value as its text.
func sqlMain() {
	source, err := pgx.Connect(context.Background(), os.Getenv("SOURCE"))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var r request
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		a, err := ask(source, r)
		var pg *pgconn.PgError
		if errors.As(err, &pg) {
			a = map[string]any{"error": pg.Message, "code": pg.Code}
		} else if err != nil {
			a = map[string]any{"error": err.Error()}
		}
		line, _ := json.Marshal(a)
		fmt.Println(string(line))
	}
}

func ask(source *pgx.Conn, r request) (map[string]any, error) {
	var fields []pgconn.FieldDescription
	rows, parameters := [][]any{}, []string{}
	if r.Describe {
		st, err := source.PgConn().Prepare(context.Background(), "", r.SQL, nil)
		if err != nil {
			return nil, err
		}
		fields = st.Fields
		for _, oid := range st.ParamOIDs {
			parameters = append(parameters, typeName(oid))
		}
	} else {
		var values [][]byte
		for _, p := range r.Parameters {
			values = append(values, nil)
			if p != nil {
				values[len(values)-1] = []byte(*p)
			}
		}
		result := source.PgConn().ExecParams(context.Background(), r.SQL, values, nil, nil, nil).Read()
		if result.Err != nil {
			return nil, result.Err
		}
		fields = result.FieldDescriptions
		for _, cells := range result.Rows {
			row := []any{}
			for _, cell := range cells {
				if cell == nil {
					row = append(row, nil)
				} else {
					row = append(row, string(cell))
				}
			}
			rows = append(rows, row)
		}
	}
	columns := []map[string]string{}
	for _, f := range fields {
		columns = append(columns, map[string]string{"name": f.Name, "type": typeName(f.DataTypeOID)})
	}
	return map[string]any{"parameters": parameters, "columns": columns, "rows": rows}, nil
}

func typeName(oid uint32) string {
	if t, ok := pgtype.NewMap().TypeForOID(oid); ok {
		return t.Name
	}
	return "text"
}
