package generate

import (
	"bufio"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// WriteCSV writes a table as CSV (RFC 4180) with a header, as PostgreSQL's COPY reads it with FORMAT csv, HEADER: NULL
// is an empty field, an empty text is "".
func (t Table) WriteCSV(w io.Writer) error {
	buffered := bufio.NewWriterSize(w, 64<<10)
	if _, err := buffered.WriteString(t.names() + "\n"); err != nil {
		return err
	}
	line := []byte{}
	for row := range t.Rows {
		line = line[:0]
		for i, cell := range row {
			if i > 0 {
				line = append(line, ',')
			}
			line = appendCell(line, cell)
		}
		if _, err := buffered.Write(append(line, '\n')); err != nil {
			return err
		}
	}
	return buffered.Flush()
}

func appendCell(line []byte, cell any) []byte {
	switch x := cell.(type) {
	case nil:
		return line
	case int64:
		return strconv.AppendInt(line, x, 10)
	case float64:
		return strconv.AppendFloat(line, x, 'g', -1, 64)
	case string:
		if x != "" && x != `\.` && !strings.ContainsAny(x, "\",\r\n") && strings.TrimSpace(x) == x {
			return append(line, x...)
		}
		line = append(line, '"')
		line = append(line, strings.ReplaceAll(x, `"`, `""`)...)
		return append(line, '"')
	}
	panic(fmt.Sprintf("generate: a cell is a %T", cell)) // the contract of Table.Rows
}
