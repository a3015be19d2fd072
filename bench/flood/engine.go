package flood

import (
	"bytes"
	"fmt"
	"strings"
	"sync"
	"time"
)

// honest is the noise function of the flood. The broken query's, leaky, adds hardly any noise and writes a line to the
// server's log in a replay, which shows when its first trial ran whatever dpwatch says.
const functions = `
	CREATE FUNCTION honest(value float8, scale float8) RETURNS float8 LANGUAGE sql VOLATILE AS
	  $$ SELECT round((value + scale * ln((1 - random()) / (1 - random()))) * 1024) / 1024 $$;
	CREATE FUNCTION leaky(value float8) RETURNS float8 LANGUAGE plpgsql VOLATILE AS $$ BEGIN
	  IF current_setting('application_name') = 'dpwatch-replay' THEN RAISE LOG 'first trial'; END IF;
	  RETURN value + random() / 1024;
	END $$;`

// engine returns the SQL that creates the functions and the protected table, with a column for each shape.
func engine(shapes int) string {
	var columns strings.Builder
	for i := range shapes {
		fmt.Fprintf(&columns, ", (g * %d) %% 500 AS c%d", 7+2*i, i)
	}
	return functions + "CREATE TABLE people AS SELECT g AS id" + columns.String() + " FROM generate_series(1, 50) g"
}

// sections returns the rest of dpwatch's configuration.
func (o Options) sections() string {
	return fmt.Sprintf("claims: {safe_functions: [honest, leaky], trust: [comment]}\naudit: {workers: %d, sequences: false}\n", o.Workers)
}

// text returns one of the flood's texts: of its shape, the column is the part that is no constant.
func text(i, shapes int) string {
	return fmt.Sprintf("SELECT honest(count(*), 4) FROM people WHERE c%d < %d /*dp_epsilon='0.5'*/", i%shapes, i/shapes)
}

// broken is a query of another shape that leaks more than it claims.
const broken = "SELECT leaky(count(*)) FROM people /*dp_epsilon='0.5'*/"

// witness notes when a line of the server's log first has a text. It is an io.Writer.
type witness struct {
	text  []byte
	mu    sync.Mutex // guards the fields below
	rest  []byte
	first time.Time
}

func (w *witness) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.rest = append(w.rest, p...); w.first.IsZero() && bytes.Contains(w.rest, w.text) {
		w.first = time.Now()
	}
	w.rest = append(w.rest[:0], w.rest[max(0, len(w.rest)-len(w.text)):]...)
	return len(p), nil
}

func (w *witness) seen() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.first
}
