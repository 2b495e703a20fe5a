"""``separate``: decide whether two classes are linearly separable."""

from __future__ import annotations

from contextlib import closing
from typing import Any

import scipy.sparse as sp

from linsep.data import Dataset, Location, dataset
from linsep.data import open as open_data
from linsep.data.entrance.finite import refuse_nonfinite
from linsep.errors import BadInput
from linsep.estimators import parameters
from linsep.monitoring import Job
from linsep.separability import METHODS, WIDE, Inseparable, Separable, Undecided, decide


def separate(
    X: Any,
    y: Any = None,
    *,
    method: str = "auto",
    fit_intercept: bool = True,
    n_threads: int | None = None,
    random_state: Any = None,
) -> Separable | Inseparable | Undecided:
    """Decide whether a hyperplane separates two classes strictly, with a proof either way.

    Separable: the answer contains a hyperplane with every row strictly on the side of its class. Inseparable: it
    contains at most d + 2 rows with the weights of a point that lies in the convex hulls of both classes, and says
    whether the classes overlap or only touch (quasi-separation). Both have ``check(X, y, exact=False)``.

    The entries of X are taken as exact numbers: two classes a rounding error apart are separable. If float64 is not
    precise enough, small data are decided in rational arithmetic, and for large data the answer is ``Undecided``.

    Parameters
    ----------
    X : array, sparse matrix, dataframe or scan (n, d)
        Finite numbers. Rows that a scan (``linsep.scan``) gives the weight 0 are left out.
    y : array (n,)
        Labels of two classes; the second in sorted order is +1. Optional if X is a scan with its own target.
    method : {"auto", "nnls", "lp"}
        "nnls": non-negative least squares on a working set, a few passes over the data ("auto" is the
        same). "lp": the linear programme on all rows at once, through HiGHS; slow, for comparison.
    fit_intercept : bool, default True
        False: hyperplanes through the origin only.
    n_threads : int, optional
        Number of threads; the answer is bit-identical for any number.
    random_state : int or RandomState, optional
        Seed of the rows that the working set starts with.

    Returns
    -------
    Separable, Inseparable or Undecided
        ``separable`` is True, False or None.

    Raises
    ------
    BadInput
        If X is not numbers, or y does not have two classes.

    See Also
    --------
    LinearSVC : With ``C=inf``, the separating hyperplane of widest margin.
    Perceptron : A separating hyperplane by Rosenblatt's rule.

    Notes
    -----
    Exactly one of the two answers exists (Gordan 1873), and d + 2 rows suffice for the second (Kirchberger 1903). The
    problem is solved as non-negative least squares on a working set [1]_.

    References
    ----------
    .. [1] Lawson and Hanson, Solving Least Squares Problems, 1974.

    Examples
    --------
    >>> from linsep import separate
    >>> answer = separate([[0.0], [1.0], [2.0], [3.0]], ["a", "a", "b", "b"])
    >>> answer.separable
    True
    >>> answer = separate([[0.0], [1.0], [2.0]], ["a", "b", "a"])
    >>> answer.rows, answer.weights, answer.point
    (array([0, 1, 2]), array([0.25, 0.5 , 0.25]), array([1.]))
    """
    parameters.one_of("method", method, METHODS)
    affine = parameters.flag("fit_intercept", fit_intercept)
    opened = open_data(X, y, None, "separate")
    rows, known, weight = opened.rows, opened.labels(), opened.weights()
    if len(known.classes) > 2:
        shown = known.classes[0].item() if hasattr(known.classes[0], "item") else known.classes[0]
        raise BadInput(
            f"separate compares two classes, y holds {len(known.classes)}; ask for one class against the others, "
            f"for instance separate(X, y == {shown!r}), or for the rows of two classes."
        )
    if opened.location is not Location.CLUSTER:
        refuse_nonfinite(rows, opened.names)
    if sp.issparse(rows) and not rows.has_canonical_format:
        rows = rows.copy()
        rows.sum_duplicates()
    data: Dataset = dataset(
        rows, known.signs(), weight=weight, n_threads=parameters.threads(n_threads)
    )
    data = _where_decidable(data, method) if data.location is Location.CLUSTER else data
    with closing(data), Job("separate"):
        return decide(
            data,
            fit_intercept=affine,
            method=method,
            seed=parameters.seed(random_state) or 0,
            classes=known.classes,
        )


def _where_decidable(data: Dataset, method: str) -> Dataset:
    """Return the data on a cluster, copied to memory if they are wide or sparse or the method is "lp"."""
    if data.d <= WIDE and method != "lp" and not data.sparse:
        return data
    return data.to_local()
