"""What the functions of adapter.sql call. They take arrays; none reads a table."""
from later import later

later("scipy.stats")  # most of the time of the import below, and not used by these functions

import numpy
import pipeline_dp
from pipeline_dp.aggregate_params import NormKind


def aggregate(metric, rows, epsilon, delta, public, **bounds):
    """Return the partitions' answers. rows are (person, partition, value); without public partitions they are private."""
    accountant = pipeline_dp.NaiveBudgetAccountant(total_epsilon=epsilon, total_delta=delta)
    engine = pipeline_dp.DPEngine(accountant, pipeline_dp.LocalBackend())
    extractors = pipeline_dp.DataExtractors(
        privacy_id_extractor=lambda row: row[0], partition_extractor=lambda row: row[1], value_extractor=lambda row: row[2])
    params = pipeline_dp.AggregateParams(
        metrics=[metric], noise_kind=pipeline_dp.NoiseKind.LAPLACE, max_partitions_contributed=1, max_contributions_per_partition=1, **bounds)
    released = engine.aggregate(rows, params, extractors, public_partitions=public)
    accountant.compute_budgets()
    return {partition: answer[0] for partition, answer in released}


def scalar(metric, values, low, high, epsilon):
    """Call a metric of all values, one of each person, which are one public partition."""
    bounds = {} if low is None else {"min_value": low, "max_value": high}
    rows = [(person, "all", value) for person, value in enumerate(values)]
    return float(aggregate(getattr(pipeline_dp.Metrics, metric), rows, epsilon, 0, ["all"], **bounds)["all"])


def counts(values, keys, epsilon):
    """Count the rows of each key, which are public partitions."""
    released = aggregate(pipeline_dp.Metrics.COUNT, [(person, key, 0) for person, key in enumerate(values)], epsilon, 0, keys)
    return [float(released[key]) for key in keys]


def vector_sum(xs, ys, high, epsilon, delta):
    """Add vectors of two numbers between -high and high, in one private partition; None if it is not released."""
    rows = [(person, "all", numpy.array(vector)) for person, vector in enumerate(zip(xs, ys))]
    released = aggregate(pipeline_dp.Metrics.VECTOR_SUM, rows, epsilon, delta, None,
                         vector_norm_kind=NormKind.Linf, vector_max_norm=high, vector_size=2)
    return [float(n) for n in released["all"]] if "all" in released else None
