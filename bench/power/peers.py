"""Reads samples of two worlds and answers what other testers of differential privacy find in them.

Each line of the input is a JSON object: {"files": [D0, D1], "columns": k, "epsilon": e, "delta": d, "sizes": [n, ...],
"bounds": [n, ...]}. The files have little-endian float64 numbers, k of each trial. Each line of the output is a JSON
object: for every tester {"found": [bool for each size], "bounds": [lower bound for each of "bounds"], "seconds": those
of a verdict on the largest size}.

The testers are used as their packages have them, on the first n trials of each world at the error rate .05:

- StatDP (pystatdp): the event is selected on the first half of the trials and tested on the second one. It knows no
  delta.
- the evaluator of opendp-smartnoise: its histogram test, for each column at the rate .05 / k.
- privacy-estimates: the event, a threshold of a column or a value, is the one with the largest estimate less two
  standard errors on the first half of the trials; compute_eps_lo (jeffreys) reads its counts on the second half. Its joint-beta integrates for 26 s
  a verdict of 100,000 trials, and misses the peak.

The lower bound of a test is the largest epsilon at which it finds a violation, by bisection to .01.
"""

import json
import sys
import time
import warnings

import numpy as np
from numba import njit

warnings.filterwarnings("ignore")
from opendp.smartnoise.evaluation.evaluator._dp_evaluator import DPEvaluator
from opendp.smartnoise.evaluation.params._eval_params import EvaluatorParams
from opendp.smartnoise.evaluation.params._privacy_params import PrivacyParams
from privacy_estimates import AttackResults, compute_eps_lo
from pystatdp.hypotest import hypothesis_test
from pystatdp.selectors import select_event

ALPHA = 0.05
LARGEST = 12.0


@njit
def seed(s):
    np.random.seed(s)


class OneProcess:
    """What StatDP uses of a multiprocessing.Pool."""

    _processes = 1

    def imap_unordered(self, f, items):
        return map(f, items)


class Samples:
    """An algorithm of StatDP: the input is the number of a world, and every call returns its next trial."""

    def __init__(self, worlds):
        self.worlds, self.next = [w.tolist() for w in worlds], [0, 0]

    def __call__(self, world):
        x = self.worlds[world]
        row = x[self.next[world] % len(x)]  # one call more than there are trials, which it throws away
        self.next[world] += 1
        return row if len(row) > 1 else np.float64(row[0])


def statdp(worlds, epsilon, _delta):
    n = len(worlds[0]) // 2
    if n < 5:
        return False
    first, second = [w[:n] for w in worlds], [w[n:] for w in worlds]
    pool = OneProcess()
    d1, d2, kwargs, event = select_event(Samples(first), [(0, 1, {})], epsilon, n, pool, quiet=True)
    p = hypothesis_test(Samples(second), d1, d2, kwargs, event, epsilon, n, pool, report_p2=False)
    return bool(p < ALPHA)


def smartnoise(worlds, epsilon, delta):
    evaluator, k = DPEvaluator(), worlds[0].shape[1]
    for column in range(k):
        d0, d1 = worlds[0][:, column], worlds[1][:, column]
        ep, pp = EvaluatorParams(alpha=ALPHA / k), PrivacyParams(epsilon=epsilon, delta=delta)
        h0, h1, edges = evaluator._generate_histogram_neighbors(d0, d1, ep)
        if edges.size < 2:
            continue
        if not evaluator._dp_test(h0, h1, edges, d0.size, d1.size, ep, pp)[0]:
            return True
    return False


def estimates(worlds, delta):
    """The lower bound of privacy-estimates."""
    n = len(worlds[0]) // 2
    if n < 5:
        return 0.0
    first, second = [w[:n] for w in worlds], [w[n:] for w in worlds]
    best, event = -np.inf, None
    for column in range(worlds[0].shape[1]):
        a, b = np.sort(first[0][:, column]), np.sort(first[1][:, column])
        both = np.unique(np.concatenate((a, b)))
        cuts = both if len(both) <= 200 else np.quantile(both, np.linspace(0, 1, 201))
        for x in cuts:
            below = [np.searchsorted(s, x, "right") / n for s in (a, b)]
            equal = [below[i] - np.searchsorted(s, x, "left") / n for i, s in enumerate((a, b))]
            for kind, (p, q) in (("<=", below), (">", [1 - y for y in below]), ("=", equal)):
                for world, u, v in ((0, p, q), (1, q, p)):
                    u, v = max(u - delta, 1e-9), v + 1 / n
                    estimate = np.log(u / v) - 2 * np.sqrt(1 / (n * u) + 1 / (n * v))
                    if estimate > best:
                        best, event = estimate, (column, kind, x, world)
    column, kind, x, world = event
    holds = {"<=": lambda y: y <= x, ">": lambda y: y > x, "=": lambda y: y == x}[kind]
    inside = [int(np.count_nonzero(holds(w[:, column]))) for w in second]
    size = len(second[0])
    tp, fp = inside[world], inside[1 - world]
    try:
        return float(compute_eps_lo(AttackResults(FN=size - tp, FP=fp, TN=size - fp, TP=tp), delta, ALPHA, "jeffreys"))
    except Exception:
        return 0.0


def largest(test, worlds, delta):
    """The largest epsilon at which a test finds a violation."""
    low, high = 0.0, LARGEST
    while high - low > 0.01:
        middle = (low + high) / 2
        if test(worlds, middle, delta):
            low = middle
        else:
            high = middle
    return low


def answer(task):
    k, epsilon, delta = task["columns"], task["epsilon"], task["delta"]
    worlds = [np.fromfile(f, dtype="<f8").reshape(-1, k) for f in task["files"]]
    tests = {"statdp": statdp, "smartnoise": smartnoise, "estimates": lambda w, e, d: estimates(w, d) > e}
    out = {}
    for name, test in tests.items():
        found, seconds = [], 0.0
        for n in task["sizes"]:
            begin = time.perf_counter()
            found.append(bool(test([w[:n] for w in worlds], epsilon, delta)))
            seconds = time.perf_counter() - begin
        bounds = []
        for n in task["bounds"]:
            part = [w[:n] for w in worlds]
            bounds.append(estimates(part, delta) if name == "estimates" else largest(test, part, delta))
        out[name] = {"found": found, "bounds": bounds, "seconds": seconds}
    return out


for line in sys.stdin:
    np.random.seed(1)
    seed(1)
    print(json.dumps(answer(json.loads(line))), flush=True)
