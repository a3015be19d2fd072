"""SmartNoise SQL as a child of examples/gateway, which has the protocol: a request and an answer are lines of JSON."""
import functools
import json
import os
import re
import sys

import psycopg2
import snsql

people = {"row_privacy": True, "rows": 200, "id": {"type": "int"}, "city": {"type": "string"},
          "age": {"type": "int", "lower": 0, "upper": 100}, "bonus": {"type": "int", "lower": 0, "upper": 100},
          "balance": {"type": "int", "lower": -100, "upper": 100}, "income": {"type": "float", "lower": 0, "upper": 10000}}
connection = psycopg2.connect(os.environ["SOURCE"])
connection.autocommit = True
reader = snsql.from_connection(connection, privacy=snsql.Privacy(epsilon=1.0, delta=1e-6), engine="postgres",
                               metadata={"": {schema: {"people": dict(people)} for schema in ("public", "d0", "d1_1")}})
# A query is parsed and rewritten once for all its answers: that takes longer than the rest. The noise is drawn afresh.
reader.parse_query_string, rewrite, plans = functools.cache(reader.parse_query_string), reader._rewrite_ast, {}


def plan(query):
    if id(query) not in plans:
        plans[id(query)] = rewrite(query)
    return plans[id(query)]


reader._rewrite_ast = plan
types = {"int": "int8", "float": "float8", "boolean": "bool"}


def answer(sql, parameters, describe):
    if re.search(r"\bdp_cost\b", sql):  # SELECT epsilon, delta FROM dp_cost($1)
        epsilon, delta = (0, 0) if describe else reader.get_privacy_cost(parameters[0])
        return {"columns": [{"name": "epsilon", "type": "float8"}, {"name": "delta", "type": "float8"}], "rows": [[float(epsilon), float(delta)]]}
    _, query = reader._rewrite_ast(reader.parse_query_string(sql))
    columns = [{"name": s.name.replace("???", "?column?"), "type": types.get(s.expression.type(), "text")} for s in query._select_symbols]
    if describe:
        return {"columns": columns, "rows": []}
    rows = reader.execute(sql)[1:]
    if connection.server_version >= 150000:  # dpwatch looks at the server's counters of what trials read
        connection.cursor().execute("SELECT pg_stat_force_next_flush()")
    return {"columns": columns, "rows": rows}


for line in sys.stdin:
    try:
        result = answer(**json.loads(line))
    except psycopg2.Error as e:
        result = {"error": "the source refuses the statement", "code": e.pgcode or "58000"}
    except Exception as e:
        result = {"error": "SmartNoise: " + str(e), "code": "0A000"}
    print(json.dumps(result), flush=True)
