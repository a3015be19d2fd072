package zoo_test

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/dpwatch/dpwatch/internal/pgtemp"
	"github.com/dpwatch/dpwatch/internal/zoo"
)

func ExampleInstall() {
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
	if err := zoo.Install(ctx, conn, "public"); err != nil {
		fmt.Println(err)
		return
	}
	var count int
	err = conn.QueryRow(ctx, "select anon_count(x, 1e9) from generate_series(1, 7) as x").Scan(&count)
	fmt.Println(count, err)
	// Output: 7 <nil>
}
