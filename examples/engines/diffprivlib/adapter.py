"""What the functions of adapter.sql call. They take arrays; none reads a table."""
import importlib.util
import sys
import types
import warnings

import numpy

from later import later


def check_random_state(seed):
    """What diffprivlib takes from sklearn.utils, which is imported only for a seed that is given: no function below does."""
    if seed is None:
        return numpy.random.mtrand._rand  # as sklearn.utils does
    import sklearn.utils

    return sklearn.utils.check_random_state(seed)


# An import of diffprivlib takes a second, most of it for modules that only its models use. These are loaded with the
# first model.
sys.modules["sklearn"] = sys.modules["sklearn.utils"] = types.ModuleType("sklearn.utils")
sys.modules["sklearn.utils"].check_random_state = check_random_state
spec = importlib.util.find_spec("diffprivlib")
diffprivlib = sys.modules["diffprivlib"] = importlib.util.module_from_spec(spec)
later("diffprivlib.models")
spec.loader.exec_module(diffprivlib)
del sys.modules["sklearn"], sys.modules["sklearn.utils"]
later("scipy.stats")

warnings.simplefilter("ignore")  # PrivacyLeakWarning, when bounds are missing: in a database no one would read it


def tool(name, values, low, high, epsilon):
    """Call a function of diffprivlib.tools; without low and high, without bounds."""
    bounds = None if low is None else (low, high)
    return float(getattr(diffprivlib.tools, name)(numpy.array(values, dtype=float), epsilon=epsilon, bounds=bounds))


def count(values, epsilon):
    return int(diffprivlib.tools.count_nonzero(values, epsilon=epsilon))


def histogram(values, bins, low, high, epsilon):
    counts, _ = diffprivlib.tools.histogram(values, epsilon=epsilon, bins=bins, range=(low, high))
    return [int(n) for n in counts]


def slope(x, y, high_x, high_y, epsilon):
    """Fit y = slope * x, without an intercept."""
    from diffprivlib.models.linear_regression import LinearRegression

    model = LinearRegression(epsilon=epsilon, bounds_X=(0, high_x), bounds_y=(0, high_y), fit_intercept=False)
    return float(model.fit(numpy.array(x).reshape(-1, 1), numpy.array(y)).coef_[0])


def laplace(answer, sensitivity, epsilon):
    return float(diffprivlib.mechanisms.Laplace(epsilon=epsilon, sensitivity=sensitivity).randomise(answer))
