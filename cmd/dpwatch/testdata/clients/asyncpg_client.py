import asyncio
import io

import asyncpg

from dp import NAME, epsilon, sent

BOUND = "SELECT dp_count(count(*), $1) FROM people WHERE grp = $2"
SETTING = "SELECT noisy(count(*), 4) FROM people"


async def arguments(c):
    e = epsilon()
    await c.execute(f"SELECT dp_count(count(*), {e}) FROM people")
    sent(e)
    e = epsilon()
    await c.fetch(f"SELECT dp_count(count(*), {e}) FROM people")
    sent(e)
    e = epsilon()
    await c.fetchval(BOUND, e, 1)
    sent(e, e, 1)
    e = epsilon()
    for _ in range(4):  # one statement of the cache of statements
        await c.fetchrow(BOUND, e, 2)
    sent(e, e, 2, times=4)
    e = epsilon()
    await c.fetch("SELECT dp_count(count(*), $1) FROM people WHERE grp = ANY($2)", e, [0, 1])
    sent(e, e, "{0,1}")
    e = epsilon()  # the client reads the type, and sets jit by set_config for that
    await c.fetch("SELECT dp_count(count(*), $1), $2::mood[] AS moods FROM people", e, ["sad", "happy"])
    sent(e, e, "\\x" + array_of_moods("sad", "happy", oid=await c.fetchval("SELECT 'mood'::regtype::oid")))
    e = epsilon()
    await c.fetchval(BOUND, e, 0)
    sent(e, e, 0)
    prepared = await c.prepare(BOUND)
    for group in (0, 1, 2):
        e = epsilon()
        await prepared.fetchval(e, group)
        sent(e, e, group)
    many = [(epsilon(), group) for group in (0, 1, 2)]
    await c.executemany(BOUND, many)
    for e, group in many:
        sent(e, e, group)
    e = epsilon()
    await c.executemany(BOUND, [(e, 1)] * 2000)  # a long pipeline
    sent(e, e, 1, times=2000)
    await c.execute("CREATE TEMP TABLE copied (a int, b text)")
    await c.copy_records_to_table("copied", records=[(i, "x" * i) for i in range(200)])
    e = epsilon()
    await c.fetchval(BOUND, e, 1)
    sent(e, e, 1)
    first, second = epsilon(), epsilon()
    await c.execute(f"SELECT dp_count(count(*), {first}) FROM people; SELECT 1; SELECT dp_count(count(*), {second}) FROM people")
    sent(first)
    sent(second)


def array_of_moods(*moods, oid):
    text = b"".join(len(m).to_bytes(4, "big") + m.encode() for m in moods)
    return b"".join(n.to_bytes(4, "big") for n in (1, 0, oid, len(moods), 1)).hex() + text.hex()


async def transactions(c):
    async with c.transaction(isolation="repeatable_read", readonly=True):
        e = epsilon()
        await c.fetchval(BOUND, e, 1)
        sent(e, e, 1)
        e = epsilon()
        async for _ in c.cursor("SELECT grp, dp_count(count(*), $1) FROM people GROUP BY grp", e, prefetch=1):
            pass
        sent(e, e)
        try:
            async with c.transaction():
                e = epsilon()
                await c.fetchval(BOUND, e, 2)
                sent(e, e, 2)
                e = epsilon()  # its error is an answer
                await c.fetchval("SELECT dp_count(count(*), $1) / (count(*) - 50) FROM people", e)
        except asyncpg.DivisionByZeroError:
            sent(e, e)
        e = epsilon()
        await c.fetchval(BOUND, e, 0)
        sent(e, e, 0)
    e = epsilon()
    await c.copy_from_query("SELECT dp_count(count(*), $1) FROM people", e, output=io.BytesIO())
    sent(e)
    for sql in ("SELEC", "SELECT dp_count(count(*), 0.5) FROM nothing"):
        try:
            await c.fetch(sql)
        except asyncpg.PostgresError:
            pass


async def settings(c):
    e = epsilon()
    await c.execute(f"SET dp.epsilon = '{e}'")
    await c.fetchval(SETTING)
    sent(e, source="setting")
    e = epsilon()
    await c.execute("SELECT set_config('dp.epsilon', $1, false)", str(e))
    await c.fetchval(SETTING)
    sent(e, source="setting")
    try:
        async with c.transaction():
            inner = epsilon()
            await c.execute("SELECT set_config('dp.epsilon', $1, true)", str(inner))
            await c.fetchval(SETTING)
            sent(inner, source="setting")
            raise RuntimeError("roll back")
    except RuntimeError:
        pass
    await c.fetchval(SETTING + " WHERE grp = $1", 1)
    sent(e, 1, source="setting")


async def main():
    options = {"application_name": NAME}
    async with asyncpg.create_pool(ssl=False, timeout=600, min_size=1, max_size=3, server_settings=options) as pool:
        async with pool.acquire() as c:
            await arguments(c)
        async with pool.acquire() as c:
            await transactions(c)
        async with pool.acquire() as c:
            await settings(c)  # the pool resets them

        async def one(group):
            e = epsilon()
            await pool.fetchval(BOUND, e, group)
            sent(e, e, group)

        await asyncio.gather(*(one(i % 3) for i in range(12)))
    e = epsilon()
    c = await asyncpg.connect(ssl=False, timeout=600, statement_cache_size=0, server_settings={**options, "dp.epsilon": str(e)})
    await c.fetchval(SETTING)
    sent(e, source="setting")
    await c.close()


asyncio.run(main())
