import asyncio

from sqlalchemy import Column, Float, Integer, MetaData, Table, URL, bindparam, create_engine, event, func, literal_column, select, text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import create_async_engine
from sqlalchemy.orm import DeclarativeBase, Session

from dp import DATABASE, HOST, NAME, PASSWORD, PORT, USER, epsilon, sent


class Base(DeclarativeBase):
    pass


class Person(Base):
    __table__ = Table("people", MetaData(), Column("id", Integer, primary_key=True), Column("grp", Integer))


people = Person.__table__


def count(e):
    return select(func.dp_count(func.count(), e)).select_from(people)


def url(driver):
    return URL.create("postgresql+" + driver, USER, PASSWORD, HOST, PORT, DATABASE)


def core(c, binds):
    """binds says whether the driver sends parameters apart from the statement."""
    def say(e, *params):
        sent(e, *(params if binds else ()))

    e = epsilon()
    c.execute(select(func.dp_count(func.count(), literal_column(str(e)))).select_from(people))
    sent(e)
    for group in (0, 1, 2):
        e = epsilon()
        c.execute(count(e).where(people.c.grp == group))
        say(e, e, group)
    e = epsilon()
    for _ in range(3):
        c.execute(count(e))
    sent(e, *((e,) if binds else ()), times=3)
    e = epsilon()
    c.execute(text("SELECT dp_count(count(*), :e) FROM people WHERE grp = :grp"), {"e": e, "grp": 2})
    say(e, e, 2)
    e = epsilon()
    c.execute(count(e).where(people.c.grp.in_([1, 2])))
    say(e, e, 1, 2)
    e = epsilon()
    some = select(people.c.id, people.c.grp).where(people.c.grp < literal_column("2")).cte("some")
    c.execute(select(some.c.grp, func.dp_count(func.count(some.c.id.distinct()), e)).group_by(some.c.grp).having(func.count() > literal_column("1")))
    say(e, e)
    e = epsilon()
    c.execute(count(bindparam("e", type_=Float)), {"e": e})
    say(e, e)
    try:
        with c.begin_nested():
            e = epsilon()
            c.execute(select(func.dp_count(func.count(), e) / (func.count() - 50)).select_from(people))
    except DBAPIError:
        say(e, e, 50)
    e = epsilon()
    c.exec_driver_sql(f"SELECT dp_count(count(*), {e}) FROM people")
    sent(e)
    e = epsilon()
    c.exec_driver_sql(f"SET LOCAL dp.epsilon = '{e}'")
    c.execute(select(func.noisy(func.count(), literal_column("4"))).select_from(people))
    sent(e, source="setting")
    c.commit()
    e = epsilon()
    c.execute(select(func.set_config("dp.epsilon", str(e), literal_column("false"))))
    c.execute(select(func.noisy(func.count(), literal_column("4"))).select_from(people))
    sent(e, source="setting")
    c.exec_driver_sql("RESET dp.epsilon")
    c.commit()


def sync(driver, binds, **options):
    engine = create_engine(url(driver), pool_size=2, pool_pre_ping=True, connect_args={"application_name": NAME}, **options)
    with engine.connect() as c:
        core(c, binds)
    e = epsilon()
    with engine.connect().execution_options(stream_results=True, max_row_buffer=1) as c:
        list(c.execute(select(people.c.grp, func.dp_count(func.count(), e)).group_by(people.c.grp)))
        sent(e, *((e,) if binds else ()))
    with Session(engine) as session:
        session.get(Person, 1)
        e = epsilon()
        session.scalar(select(func.dp_count(func.count(Person.id), e)).where(Person.grp == 1))
        sent(e, *((e, 1) if binds else ()))
        session.rollback()
        e = epsilon()
        session.execute(select(Person.grp, func.dp_count(func.count(Person.id), e).label("n")).group_by(Person.grp).order_by(Person.grp).limit(2)).all()
        sent(e, *((e, 2) if binds else ()))
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as c:
        e = epsilon()
        c.execute(count(e))
        sent(e, *((e,) if binds else ()))
    engine.dispose()


async def asynchronous():
    engine = create_async_engine(url("asyncpg"), connect_args={"ssl": False, "timeout": 600, "server_settings": {"application_name": NAME}})

    @event.listens_for(engine.sync_engine, "begin")
    def begin(c):
        c.exec_driver_sql("SELECT set_config('app.tenant', $1, true), set_config('app.user', $2, true)", ("7", "ann"))

    async with engine.connect() as c:
        await c.run_sync(core, True)
        e = epsilon()
        async for _ in await c.stream(count(e).where(people.c.grp == 1)):
            pass
        sent(e, e, 1)
    await engine.dispose()


sync("psycopg", True)
sync("psycopg2", False)
asyncio.run(asynchronous())
