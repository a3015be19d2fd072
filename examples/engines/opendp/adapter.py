"""What the functions of adapter.sql call. They take arrays; none reads a table."""
import functools

# opendp.prelude would import scikit-learn as well, which takes a second in each session.
import polars
from opendp.domains import atom_domain, lazyframe_domain, series_domain, vector_domain
from opendp.extras import polars as _  # noqa: F401, registers the namespace "dp" of expressions
from opendp.measurements import make_private_lazyframe, then_laplace
from opendp.measures import max_divergence
from opendp.metrics import symmetric_distance
from opendp.mod import binary_search_chain, enable_features
from opendp.transformations import then_clamp, then_count, then_count_by_categories, then_sum

enable_features("contrib")


@functools.cache
def measurement(kind, parameters, epsilon):
    """Return the measurement of a kind with the smallest noise that keeps epsilon for a person with one row."""
    space = vector_domain(atom_domain(T=int)), symmetric_distance()
    if kind == "count":
        stable = space >> then_count()
    elif kind == "sum":
        stable = space >> then_clamp(parameters) >> then_sum()
    else:
        stable = space >> then_count_by_categories(list(parameters), null_category=False)
    return binary_search_chain(lambda scale: stable >> then_laplace(scale), d_in=1, d_out=epsilon)


def count(values, epsilon):
    return measurement("count", (), epsilon)(values)


def total(values, low, high, epsilon):
    return measurement("sum", (low, high), epsilon)(values)


def histogram(values, categories, epsilon):
    return measurement("histogram", tuple(categories), epsilon)(values)


@functools.cache
def group_measurement(keys, epsilon):
    """Return the count of rows of each key, with a data frame and a public set of keys; with_keys makes this join."""
    counts = polars.LazyFrame(schema={"key": polars.String}).group_by("key").agg(polars.len().dp.noise().alias("n"))
    plan = polars.LazyFrame({"key": keys}).join(counts, how="left", on=["key"])
    domain = lazyframe_domain([series_domain("key", atom_domain(T="String"))])
    found = make_private_lazyframe(domain, symmetric_distance(), max_divergence(), plan, global_scale=1 / epsilon)
    assert found.map(1) <= epsilon  # the engine's own account of what it releases
    return found


def group_counts(values, keys, epsilon):
    frame = polars.LazyFrame({"key": values}, schema={"key": polars.String})
    released = dict(group_measurement(tuple(keys), epsilon)(frame).collect().select("key", "n").iter_rows())
    return [released[key] for key in keys]
