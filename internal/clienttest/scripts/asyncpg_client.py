import asyncio, asyncpg, io
async def main():
    c = await asyncpg.connect(ssl=False)
    # PostgreSQL only: arrays as parameters, of which asyncpg looks up the type in the catalog
    print([tuple(r) for r in await c.fetch("SELECT $1::int + 1, $2::text, $3::bytea, $4::float8[]", 41, None, b"\x00\xff", [1.5, None])])
    # end
    print([tuple(r) for r in await c.fetch("SELECT $1::int + 1, $2::text, $3::bytea, $4::float8, $5::numeric, 1.50::numeric, NULL::date, '2020-02-29'::date, true", 41, None, b"\x00\xff", 1.5, __import__("decimal").Decimal("2.50"))])
    for i in range(3):
        print(await c.fetchval("SELECT $1::int * 2", i))
    # PostgreSQL only: temporary tables, COPY
    await c.execute("CREATE TEMP TABLE t (a int, b text); INSERT INTO t VALUES (0, 'zero'); SELECT 1")
    await c.executemany("INSERT INTO t VALUES ($1, $2)", [(i, "x" * i) for i in range(1, 500)])
    print(await c.copy_records_to_table("t", records=[(i, str(i)) for i in range(1000)]))
    out = io.BytesIO()
    print(await c.copy_from_query("SELECT count(*), sum(length(b)) FROM t", output=out), out.getvalue())
    # end
    for sql in ("SELECT 1/0", "SELEC", "SELECT $1::int / 0"):
        try:
            await (c.fetch(sql, 1) if "$" in sql else c.execute(sql))
        except asyncpg.PostgresError as e:
            print(e.sqlstate)
    async with c.transaction():
        try:
            async with c.transaction():
                await c.execute("SELECT 1/0")
        except asyncpg.PostgresError as e:
            print("savepoint", e.sqlstate)
        total = 0
        async for r in c.cursor("SELECT generate_series(1, 500) AS i", prefetch=50):
            total += r["i"]
        print(total)
    try:
        await c.fetch("SELECT pg_sleep(600)", timeout=0.3)
    except asyncio.TimeoutError:
        print("cancelled")
    # PostgreSQL only: LISTEN
    heard = asyncio.get_running_loop().create_future()
    await c.add_listener("news", lambda *a: heard.done() or heard.set_result(a[2:]))
    await c.execute("NOTIFY news, 'hello'")
    print(await heard)
    # end
    await c.execute("SELECT 'done'"); await c.close()
asyncio.run(main())
