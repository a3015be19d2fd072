import psycopg, logging, threading
logging.disable(logging.CRITICAL)
c = psycopg.connect("")
print(c.execute("SELECT %s::int + 1, %s::text, %s::bytea", (41, None, b"\x00\xff")).fetchall())
for i in range(8):
    print(c.execute("SELECT %s::int * 2", (i,), prepare=True).fetchone())
print(c.cursor(binary=True).execute("SELECT 1.5::float8, '2020-01-01'::date").fetchone())
try:
    with c.transaction():
        c.execute("SELECT 1/0")
except psycopg.Error as e:
    print(e.sqlstate)
for binary in False, True:
    print(c.cursor(binary=binary).execute("""SELECT true, 7::int2, 7::int4, 7::int8, 0.1::float8, 1.50::numeric, -123456789012345678901234567890.10::numeric, 'NaN'::numeric, 'é',
        '\\x00ff'::bytea, '2020-02-29'::date, '2020-02-29 12:00:00.5'::timestamp, '2020-02-29 12:00:00+00'::timestamptz, '{"b": 9007199254740993, "a": [1.10]}'::jsonb,
        '{1,NULL}'::int4[], 'f81d4fae-7dec-11d0-a765-00a0c91e6bf6'::uuid, NULL::float8""").fetchone())
print(c.execute("SELECT %b::int, %b::float8, %b::bool, %b::numeric", (-1, 0.5, True, __import__("decimal").Decimal("2.50"))).fetchone())
with c.transaction():
    try:
        with c.transaction():
            c.execute("SELEC")
    except psycopg.Error as e:
        print("nested", e.sqlstate, c.info.transaction_status)
    print(c.execute("SELECT 'goes on'").fetchone())
c.commit()
try:
    c.execute("SELECT 1/0")
except psycopg.Error as e:
    print(e.sqlstate)
try:
    c.execute("SELECT 1")
except psycopg.Error as e:
    print(e.sqlstate)
c.commit(); print(c.info.transaction_status)
ended = threading.Event()
def cancel():
    while not ended.wait(0.05):
        c.cancel_safe()
canceller = threading.Thread(target=cancel); canceller.start()
try:
    c.execute("SELECT pg_sleep(600)")
except psycopg.Error as e:
    print("canceled", e.sqlstate)
ended.set(); canceller.join(); c.rollback()
c.read_only = True; c.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
print(c.execute("SELECT 2").fetchone()); c.rollback()
c.read_only = c.isolation_level = None
# PostgreSQL only: temporary tables, COPY
k = c.cursor(); k.execute("CREATE TEMP TABLE t (a int, b text)")
with k.copy("COPY t FROM STDIN") as w:
    for i in range(500):
        w.write_row((i, "x" * i))
with k.copy("COPY (SELECT count(*), sum(length(b)) FROM t) TO STDOUT") as r:
    print(list(r.rows()))
try:
    with k.copy("COPY t FROM STDIN") as w:
        w.write_row((1, "a")); raise RuntimeError("client gives up")
except Exception as e:
    print(type(e).__name__)
c.rollback()
# end
try:
    with c.pipeline() as p:
        a = c.execute("SELECT %s::int", (1,)); b = c.execute("SELECT %s::int", (2,)); p.sync(); print(a.fetchone(), b.fetchone())
        d = c.execute("SELECT 1/%s::int", (0,)); e = c.execute("SELECT 3"); p.sync()
except psycopg.Error as e:
    print(e.sqlstate)
c.rollback()
# PostgreSQL only: DECLARE
with c.cursor(name="server_side") as s:
    s.itersize = 50
    s.execute("SELECT generate_series(1, 500)"); print(sum(r[0] for r in s))
# end
print(c.execute("SELECT generate_series(1, 500)").fetchall()[-1])
c.execute("DEALLOCATE ALL")
c.execute("SELECT 'done'"); c.close()
