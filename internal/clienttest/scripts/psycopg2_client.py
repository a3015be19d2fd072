import psycopg2, psycopg2.extras, io, os
c = psycopg2.connect("")
k = c.cursor()
k.execute("SELECT %s + 1, %s, %s", (41, "it's", None)); print(k.fetchall())
# PostgreSQL only: temporary tables, COPY, DECLARE
k.execute("CREATE TEMP TABLE t (a int, b text)")
k.copy_expert("COPY t FROM STDIN", io.StringIO("1\tone\n2\t\\N\n"))
out = io.StringIO(); k.copy_expert("COPY t TO STDOUT CSV", out); print(out.getvalue())
psycopg2.extras.execute_values(k, "INSERT INTO t VALUES %s", [(i, str(i)) for i in range(1000)])
n = c.cursor("server_side"); n.itersize = 100
n.execute("SELECT a FROM t ORDER BY a"); print(sum(r[0] for r in n)); n.close()
# end
for sql in ("SELECT 1/0", "SELEC"):
    try:
        k.execute(sql)
    except psycopg2.Error as e:
        print(e.pgcode); c.rollback()
c.commit()
# PostgreSQL only: large objects
lo = c.lobject(0, "wb"); lo.write(b"large" * 1000); lo.close()
lo = c.lobject(lo.oid, "rb"); print(len(lo.read())); lo.unlink(); c.commit()
# end
k.execute("SELECT true, 7::int8, 0.1::float8, 1.50::numeric, -123456789012345678901234567890.10::numeric, '2020-02-29'::date, '{1,NULL}'::int4[]"); print(k.fetchone())
k.execute("SAVEPOINT here")
for sql in ("SELECT 1/0", "SELECT 1", "RELEASE here"):
    try:
        k.execute(sql)
    except psycopg2.Error as e:
        print(e.pgcode)
k.execute("ROLLBACK TO SAVEPOINT here"); print(k.statusmessage)
k.execute("SELECT 'done'"); print(k.fetchone()); c.close()
