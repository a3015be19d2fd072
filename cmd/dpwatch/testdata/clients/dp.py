"""Epsilons of a client's DP statements, and the lines that say what was sent."""

import itertools
import json
import os

NAME = os.environ["PGAPPNAME"]
HOST, PORT, DATABASE = os.environ["PGHOST"], int(os.environ["PGPORT"]), os.environ["PGDATABASE"]
USER, PASSWORD = os.environ["PGUSER"], os.environ["PGPASSWORD"]
numbers = itertools.count(1)


def epsilon():
    """Returns an epsilon that no other statement has."""
    return round(int(os.environ["DP_BASE"]) + next(numbers) / 10000, 4)


def sent(epsilon, *params, source="argument", times=1):
    """Says that a statement with this claim and these bound parameters was sent."""
    print(json.dumps({"epsilon": epsilon, "source": source, "params": [str(p) for p in params], "times": times}), flush=True)
