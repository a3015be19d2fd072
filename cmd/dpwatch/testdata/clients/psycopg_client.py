import psycopg
import psycopg.sql
from psycopg_pool import ConnectionPool

from dp import epsilon, sent

BOUND = "SELECT dp_count(count(*), %s) FROM people WHERE grp = %s"
SETTING = "SELECT noisy(count(*), 4) FROM people"


def arguments(c):
    e = epsilon()
    c.execute(f"SELECT dp_count(count(*), {e}) FROM people")
    sent(e)
    e = epsilon()
    c.execute(BOUND, (e, 1)).fetchall()
    sent(e, e, 1)
    e = epsilon()
    c.execute("SELECT dp_count(count(*), %(e)b) FROM people WHERE grp = ANY(%(groups)b)", {"e": e, "groups": [0, 1]}, binary=True).fetchall()
    sent(e, e, "{0,1}")
    for group in (0, 1, 2) * 3:  # the sixth is prepared
        e = epsilon()
        c.execute(BOUND, (e, group)).fetchall()
        sent(e, e, group)
    e = epsilon()
    for _ in range(3):
        c.execute(BOUND, (e, 2), prepare=True).fetchall()
    sent(e, e, 2, times=3)
    many = [(epsilon(), group) for group in (0, 1, 2)]
    c.cursor().executemany(BOUND, many, returning=True)
    for e, group in many:
        sent(e, e, group)
    e = epsilon()
    c.cursor().executemany(BOUND, [(e, 1)] * 2000)  # a long pipeline
    sent(e, e, 1, times=2000)
    c.execute("CREATE TEMP TABLE copied (a int, b text)")
    with c.cursor().copy("COPY copied FROM STDIN") as copy:
        for i in range(200):
            copy.write_row((i, "x" * i))
    e = epsilon()
    psycopg.ClientCursor(c).execute(BOUND, (e, 1))
    sent(e)
    e = epsilon()
    psycopg.RawCursor(c).execute("SELECT dp_count(count(*), $1) FROM people WHERE grp = $2", (e, 1))
    sent(e, e, 1)
    e = epsilon()
    for _ in c.cursor().stream("SELECT grp, dp_count(count(*), %s) FROM people GROUP BY grp", (e,)):
        pass
    sent(e, e)


def transactions(c):
    with c.transaction():
        e = epsilon()
        c.execute(BOUND, (e, 1))
        sent(e, e, 1)
        with c.cursor(name="server_side") as k:
            k.itersize = 1
            e = epsilon()
            k.execute("SELECT grp, dp_count(count(*), %s) FROM people GROUP BY grp", (e,))
            list(k)
            sent(e, e)
        with c.cursor(name="server_side", scrollable=True) as k:
            e = epsilon()
            k.execute(f"SELECT grp, dp_count(count(*), {e}) FROM people GROUP BY grp")
            k.fetchone()
            sent(e)
        try:
            with c.transaction():
                e = epsilon()
                c.execute("SELECT dp_count(count(*), %s) / (count(*) - 50) FROM people", (e,))
        except psycopg.errors.DivisionByZero:
            sent(e, e)
        e = epsilon()
        with c.cursor().copy("COPY (SELECT dp_count(count(*), %s) FROM people) TO STDOUT", (e,)) as copy:
            list(copy.rows())
        sent(e)
    with c.pipeline() as p:
        for group in (0, 1, 2) * 4:
            e = epsilon()
            c.execute(BOUND, (e, group))
            sent(e, e, group)
        p.sync()
    try:
        with c.pipeline() as p:
            e = epsilon()
            c.execute(BOUND, (e, 1))
            sent(e, e, 1)
            c.execute("SELECT 1/0")
            c.execute(BOUND, (0.5, 2))  # not run
            p.sync()
    except (psycopg.errors.DivisionByZero, psycopg.errors.PipelineAborted):
        pass
    e = epsilon()
    c.execute(BOUND, (e, 2))
    sent(e, e, 2)


def settings(c):
    with c.transaction():
        e = epsilon()
        c.execute("SELECT set_config('dp.epsilon', %s, true)", (str(e),))
        c.execute(SETTING)
        sent(e, source="setting")
    e = epsilon()
    c.execute(psycopg.sql.SQL("SET dp.epsilon = {}").format(e))
    c.execute(SETTING)
    sent(e, source="setting")
    c.execute(SETTING + " WHERE grp = %s", (1,))
    sent(e, 1, source="setting")
    try:
        with c.transaction():
            inner = epsilon()
            c.execute(f"SET dp.epsilon = {inner}")
            c.execute(SETTING)
            sent(inner, source="setting")
            c.execute("SELEC")
    except psycopg.errors.SyntaxError:
        pass
    with c.pipeline():
        c.execute(SETTING + " WHERE grp = %s", (2,))
        sent(e, 2, source="setting")
        inner = epsilon()
        c.execute("SELECT set_config('dp.epsilon', %s, false)", (str(inner),))
        c.execute(SETTING)
        sent(inner, source="setting")
    c.execute("RESET dp.epsilon")


with psycopg.connect("", autocommit=True) as c:
    arguments(c)
    transactions(c)
    settings(c)
with ConnectionPool("", min_size=2, max_size=2, timeout=600, reset=lambda c: c.execute("DISCARD ALL") and None, kwargs={"autocommit": True}) as pool:
    for _ in range(3):
        with pool.connection() as c:
            e = epsilon()
            c.execute("SELECT set_config('dp.epsilon', %s, false)", (str(e),))
            c.execute(SETTING)
            sent(e, source="setting")
    with pool.connection() as c:
        e = epsilon()
        c.execute(BOUND, (e, 1))
        sent(e, e, 1)
e = epsilon()
with psycopg.connect("", options=f"-c dp.epsilon={e}") as c:
    c.execute(SETTING)
    sent(e, source="setting")
