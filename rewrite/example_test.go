package rewrite_test

import (
	"fmt"
	"log"

	"github.com/dpwatch/dpwatch/internal/capture"
	"github.com/dpwatch/dpwatch/rewrite"
)

func ExampleRewriter_Analyze() {
	r, err := rewrite.New(rewrite.Options{
		Protected: []rewrite.Table{{Schema: "public", Name: "users"}},
		Claims: rewrite.ClaimRules{
			Signatures: []rewrite.Signature{{Function: "anon_count", Epsilon: -1}},
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	plan, err := r.Analyze(capture.Query{
		SQL: "WITH rich AS (SELECT * FROM users WHERE income > 50000) SELECT anon_count(id, 0.5) FROM rich /* dashboard */",
	})
	if err != nil {
		log.Fatal(err)
	}
	d1, err := plan.For("d1")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(plan.Summary)
	fmt.Printf("epsilon %g by %s of %s\n", plan.Claim.Epsilon, plan.Claim.Source, plan.Claim.Rule)
	fmt.Println(d1)

	_, err = r.Analyze(capture.Query{SQL: "SELECT leaky(income) FROM users"})
	fmt.Println(err)
	// Output:
	// WITH rich AS (SELECT * FROM users WHERE income > ?) SELECT anon_count(id, ?) FROM rich
	// epsilon 0.5 by argument of anon_count
	// WITH rich AS (SELECT * FROM "d1".users WHERE income > 50000) SELECT anon_count(id, 0.5) FROM rich /* dashboard */
	// query refused: unknown_function: function leaky is neither built in nor declared safe (FuncCall at byte 7); if it is safe to replay, list it in claims.safe_functions, or, if it takes the epsilon, in claims.functions
}
