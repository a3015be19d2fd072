// Command noisy is an engine for ../gateway that is made to be audited. It answers one SELECT of dp_count(*) and
// dp_sum(column) over one table, possibly with a comparison of a column with a whole number in WHERE. A user counts once,
// and adds a value between -low and -high to a sum; -epsilon applies to the whole query and is divided evenly among its
// aggregates. There is no GROUP BY: publishing which groups exist would need another mechanism.
package main

import (
	"bufio"
	"context"
	crypto "crypto/rand"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"regexp"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

var (
	user    = flag.String("user", "id", "the column that identifies the user of a row, the same in every table")
	low     = flag.Float64("low", 0, "lower bound of a user's contribution to a sum")
	high    = flag.Float64("high", 100, "upper bound of a user's contribution to a sum")
	epsilon = flag.Float64("epsilon", 1, "epsilon of one query")
	broken  = flag.String("broken", "none", "a planted bug: half-noise (half of the scale that epsilon requires), seeded (the same noise in every answer), "+
		"no-clip (a user counts with all rows and their full values)")

	// A comparison of a column with a number cannot fail for one row alone: the error would reveal something about it.
	grammar   = regexp.MustCompile(`(?i)^\s*SELECT\s+(.+?)\s+FROM\s+([\w."]+)(\s+WHERE\s+[\w"]+\s*(?:=|<>|<=?|>=?)\s*-?\d+)?\s*(?:--.*)?$`)
	aggregate = regexp.MustCompile(`(?i)^(dp_count)\(\*\)(?:\s+AS\s+(\w+))?$|^(dp_sum)\(([\w"]+)\)(?:\s+AS\s+(\w+))?$`)
)

// object is an answer; examples/gateway/README.md says what is in it.
type object map[string]any

func main() {
	flag.Parse()
	if !(*epsilon > 0) || !(*low <= *high) || max(-*low, *high) <= 0 || !strings.Contains(" none half-noise seeded no-clip ", " "+*broken+" ") {
		fmt.Fprintln(os.Stderr, "noisy: -epsilon must be above 0, -low at most -high, not both 0, and -broken none, half-noise, seeded or no-clip")
		os.Exit(1)
	}
	source, err := pgx.Connect(context.Background(), os.Getenv("SOURCE"))
	if err != nil {
		fmt.Fprintln(os.Stderr, "noisy: the source cannot be reached:", err)
		os.Exit(1)
	}
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		var request struct {
			SQL      string
			Describe bool
		}
		_ = json.Unmarshal(lines.Bytes(), &request) // the gateway's
		answer, err := answer(source, request.SQL, request.Describe)
		if pg := (*pgconn.PgError)(nil); errors.As(err, &pg) { // the source's message can contain values and is not passed on
			answer = object{"error": "the source refuses the statement", "code": pg.Code}
		} else if err != nil {
			answer = object{"error": err.Error(), "code": "0A000"}
		}
		line, _ := json.Marshal(answer)
		fmt.Println(string(line))
	}
}

// answer queries the source for each user's bounded contribution and adds the noise.
func answer(source *pgx.Conn, sql string, describe bool) (object, error) {
	refused := errors.New("this engine answers SELECT dp_count(*), dp_sum(column) FROM table [WHERE column < number] only")
	q := grammar.FindStringSubmatch(sql)
	if q == nil {
		return nil, refused
	}
	columns, rows, inner, outer, bounds := []object{}, [][]float64{}, []string{}, []string{}, []float64{}
	for i, item := range strings.Split(q[1], ",") {
		a := aggregate.FindStringSubmatch(strings.TrimSpace(item))
		if a == nil {
			return nil, refused
		}
		value, bound := "least(count(*), 1)", 0.0 // of a count: it is 1, without steps
		switch {
		case a[3] == "" && *broken == "no-clip":
			value = "count(*)"
		case a[3] != "" && *broken == "no-clip":
			value, bound = "sum("+a[4]+")", max(-*low, *high)
		case a[3] != "":
			value, bound = fmt.Sprintf("least(greatest(sum(%s)::float8, %g), %g)", a[4], *low, *high), max(-*low, *high)
		}
		inner, outer = append(inner, fmt.Sprintf("%s::float8 AS a%d", value, i)), append(outer, fmt.Sprintf("coalesce(sum(a%d), 0)", i))
		name := strings.ToLower(a[1] + a[3])
		if label := a[2] + a[5]; label != "" {
			name = label
		}
		columns, bounds = append(columns, object{"name": name, "type": "float8"}), append(bounds, bound)
	}
	if !describe {
		row, err := source.Query(context.Background(), fmt.Sprintf("SELECT ARRAY[%s] FROM (SELECT %s FROM %s%s GROUP BY %s) AS users",
			strings.Join(outer, ", "), strings.Join(inner, ", "), q[2], q[3], pgx.Identifier{*user}.Sanitize()))
		if err != nil {
			return nil, err
		}
		if rows, err = pgx.CollectRows(row, pgx.RowTo[[]float64]); err != nil {
			return nil, err
		}
		if source.PgConn().ParameterStatus("server_version") >= "15" { // dpwatch looks at the server's counters of what trials read
			if _, err := source.Exec(context.Background(), "SELECT pg_stat_force_next_flush()"); err != nil {
				return nil, err
			}
		}
		for i, bound := range bounds {
			rows[0][i] = noisy(rows[0][i], bound, *epsilon/float64(len(bounds)))
		}
	}
	return object{"columns": columns, "rows": rows}, nil
}

// noisy adds discrete Laplace noise (Ghosh, Roughgarden, Sundararajan 2009: two-sided geometric) to a count, or to a sum
// that one user changes by at most bound, in steps of 1/1024 of it. The bound of a count is 0.
func noisy(value, bound, epsilon float64) float64 {
	grid, sensitivity := 1.0, 1.0
	if bound > 0 {
		grid, sensitivity = bound/1024, 1025 // rounding adds one step
	}
	scale := sensitivity / epsilon
	var key [32]byte
	_, _ = crypto.Read(key[:]) // never fails
	random := rand.New(rand.NewChaCha8(key))
	switch *broken {
	case "half-noise":
		scale /= 2
	case "seeded":
		random = rand.New(rand.NewPCG(1, 2))
	}
	// The whole part of an exponential number is k = 0, 1, ... with probability proportional to exp(-k/scale).
	noise := math.Floor(scale*random.ExpFloat64()) - math.Floor(scale*random.ExpFloat64())
	return (math.Round(value/grid) + noise) * grid
}
