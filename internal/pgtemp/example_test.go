package pgtemp_test

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/dpwatch/dpwatch/internal/pgtemp"
)

func ExampleStart() {
	ctx := context.Background()
	cluster, err := pgtemp.Start(ctx, pgtemp.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer cluster.Stop()

	conn, err := pgx.Connect(ctx, cluster.DSN("postgres"))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer conn.Close(ctx)
	var answer int
	if err := conn.QueryRow(ctx, "select 6 * 7").Scan(&answer); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(answer)
	// Output: 42
}
