"""Qrlew as a child of examples/gateway, which has the protocol: a request and an answer are lines of JSON."""
import functools
import json
import os
import re
import sys

import psycopg2
import pyqrlew
import sqlalchemy

connection = psycopg2.connect(os.environ["SOURCE"])
connection.autocommit = True
source = sqlalchemy.create_engine("postgresql+psycopg2://", creator=lambda: psycopg2.connect(os.environ["SOURCE"]))
units = [("people", [], "id"), ("visits", [("id", "people", "id")], "id")]
types = {16: "bool", 20: "int8", 23: "int8", 701: "float8", 1700: "float8"}


@functools.cache
def dataset(schema):
    """The tables of a schema, with the public facts about them."""
    tables = pyqrlew.Dataset.from_database("example", source, schema)
    tables = tables.with_constraint(schema, "people", "id", pyqrlew.Dataset.CONSTRAINT_UNIQUE)
    for column, low, high in ("age", 0, 100), ("income", 0, 10000):
        tables = tables.with_range(schema, "people", column, low, high)
    return tables.with_possible_values(schema, "people", "city", ["Paris", "Rome"])


@functools.cache
def rewritten(sql):
    """The query in SQL that adds noise: PostgreSQL draws it afresh each time."""
    schema = (re.findall(r'\b(d0|d1_1)"?\.', sql) + ["public"])[0]
    relation = dataset(schema).relation(sql)
    return relation.rewrite_with_differential_privacy(dataset(schema), units, {"epsilon": 1.0, "delta": 1e-3}).relation().to_query()


def answer(sql, parameters, describe):
    with connection.cursor() as cursor:
        cursor.execute("SELECT * FROM (" + rewritten(sql) + ") AS answer" + (" LIMIT 0" if describe else ""))
        columns = [{"name": c.name, "type": types.get(c.type_code, "text")} for c in cursor.description]
        rows = [[float(v) if c["type"] == "float8" and v is not None else v for v, c in zip(row, columns)] for row in cursor]
        if connection.server_version >= 150000:  # dpwatch looks at the server's counters of what trials read
            cursor.execute("SELECT pg_stat_force_next_flush()")
    return {"columns": columns, "rows": rows}


for line in sys.stdin:
    try:
        result = answer(**json.loads(line))
    except psycopg2.Error as e:
        result = {"error": "the source refuses the statement", "code": e.pgcode or "58000"}
    except BaseException as e:  # a panic of the library is no Exception
        result = {"error": "Qrlew: " + str(e)[:200], "code": "0A000"}
    print(json.dumps(result), flush=True)
