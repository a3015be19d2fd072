package rewrite_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/dpwatch/dpwatch/internal/capture"
	"github.com/dpwatch/dpwatch/internal/pg/catalog"
	"github.com/dpwatch/dpwatch/rewrite"
)

// references is a random graph of functions (even) and views (odd) that call and read each other, often in cycles.
// Those of faulty are no correct copies by themselves.
type references struct {
	edges  [8][8]bool
	faulty [8]bool
}

func randomReferences(random *rand.Rand) (g references) {
	density := 0.1 + random.Float64()*0.3
	for i := range g.edges {
		for k := range g.edges {
			g.edges[i][k] = random.Float64() < density
		}
		g.faulty[i] = random.Float64() < 0.15
	}
	return g
}

// reachFaults is the oracle: whether a path leads from each object to a faulty one, by Warshall's algorithm.
func (g references) reachFaults() (out [8]bool) {
	reach := g.edges
	for via := range reach {
		for from := range reach {
			for to := range reach {
				reach[from][to] = reach[from][to] || reach[from][via] && reach[via][to]
			}
		}
	}
	for from := range reach {
		out[from] = g.faulty[from]
		for to, is := range reach[from] {
			out[from] = out[from] || is && g.faulty[to]
		}
	}
	return out
}

// objects adds the objects of the graph to a schema. Every second function calls in its body, the others, and views,
// according to the catalog. A faulty one reads the table elsewhere.
func (g references) objects(c *catalog.Catalog, schema string, elsewhere *rewrite.Table) {
	name := func(i int) rewrite.Table { return table(schema, fmt.Sprintf("o%d", i)) }
	for i, edges := range g.edges {
		var reads, calls []rewrite.Table
		body := ""
		for k, is := range edges {
			switch {
			case !is:
			case k%2 == 1 && i%4 == 0:
				body += fmt.Sprintf("SELECT count(*) FROM %s; ", name(k))
			case k%2 == 1:
				reads = append(reads, name(k))
			case i%4 == 0:
				body += fmt.Sprintf("SELECT %s(1); ", name(k))
			default:
				calls = append(calls, name(k))
			}
		}
		reads = append(reads, table(schema, "users"))
		if elsewhere != nil && g.faulty[i] {
			reads = append(reads, *elsewhere)
		}
		if i%2 == 1 {
			c.Relations = append(c.Relations, catalog.Relation{Table: name(i), Kind: catalog.KindView, Reads: reads, Calls: calls})
			continue
		}
		c.Functions = append(c.Functions, catalog.Function{
			Schema: schema, Name: name(i).Name, Volatility: "stable", Language: "sql", Arguments: "integer", Body: body, Reads: reads, Calls: calls,
		})
	}
}

// query returns a query that uses one object.
func (references) query(i int) string {
	if i%2 == 1 {
		return fmt.Sprintf("SELECT count(*) FROM o%d", i)
	}
	return fmt.Sprintf("SELECT count(o%d(id)) FROM users", i)
}

// TestCyclesOfCopies: a copy is accepted if and only if no path of references leads from it to a fault, whatever the
// order in which copies are checked; the reason for a refusal does not depend on the order either.
func TestCyclesOfCopies(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	accepted, refused := 0, 0
	for n := range 150 {
		g := randomReferences(random)
		o := catalogOptions()
		g.objects(o.Source, "public", nil)
		other := table("d0", "users")
		g.objects(o.Shadow, "d0", nil)
		g.objects(o.Shadow, "d1", &other)
		for i := range g.edges {
			if i%2 == 0 {
				o.AllowFunctions = append(o.AllowFunctions, fmt.Sprintf("o%d", i))
			}
		}
		one, another := newRewriter(t, o), newRewriter(t, o)
		for i, reaches := range g.reachFaults() {
			q := capture.Query{SQL: g.query(i), User: "alice", Database: "shop"}
			_, err := one.Analyze(q)
			if (err != nil) != reaches {
				t.Fatalf("graph %d: %s: error %v; leads to a fault: %t\n%+v", n, q.SQL, err, reaches, g)
			}
			if _, again := another.Analyze(q); fmt.Sprint(err) != fmt.Sprint(again) {
				t.Errorf("graph %d: %s: %v, then %v", n, q.SQL, err, again)
			}
			if err == nil {
				accepted++
			} else {
				refused++
			}
		}
	}
	if accepted < 100 || refused < 100 {
		t.Errorf("%d accepted, %d refused: the graphs test little", accepted, refused)
	}
}

// TestCyclesOfOpaqueFunctions: a plan names the assumption about a function if and only if a path of calls leads from
// it to one whose reads cannot be derived.
func TestCyclesOfOpaqueFunctions(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(3, 4))
	for n := range 150 {
		g := randomReferences(random)
		o := catalogOptions()
		for i, edges := range g.edges {
			f := catalog.Function{Schema: "public", Name: fmt.Sprintf("o%d", i), Volatility: "stable", Language: "sql", Arguments: "integer"}
			if g.faulty[i] {
				f.Language, f.Body = "plpython3u", "return 1"
			}
			for k, is := range edges {
				if is {
					f.Calls = append(f.Calls, table("public", fmt.Sprintf("o%d", k)))
				}
			}
			o.Source.Functions = append(o.Source.Functions, f)
			o.AllowFunctions = append(o.AllowFunctions, f.Name)
		}
		r := newRewriter(t, o)
		for i, reaches := range g.reachFaults() {
			plan, err := r.Analyze(capture.Query{SQL: fmt.Sprintf("SELECT count(o%d(id)) FROM users", i), User: "alice", Database: "shop"})
			if err != nil {
				t.Fatal(err)
			}
			assumed := slices.Contains(plan.Assumed, rewrite.AssumedFunction(fmt.Sprintf("public.o%d", i)))
			if assumed != reaches {
				t.Fatalf("graph %d: o%d: assumed %t; leads to such a function: %t\n%+v", n, i, assumed, reaches, g)
			}
		}
	}
}
