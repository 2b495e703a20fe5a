"""Small calls of native functions and small fits, which together reach every native function that takes memory.

tests/sanitizers lets each of their allocations fail; tests/kernels asserts that none of these functions is missing.
"""

import io
import warnings

import numpy as np
import scipy.sparse as sp

import linsep
from linsep import _kernels as K  # noqa: N812

RNG = np.random.default_rng(0)
N, D = 60, 5
X = RNG.normal(size=(N, D))
Y = (X[:, 0] + RNG.normal(size=N) > 0).astype(np.int64)
THREE = np.argmax(X[:, :3] + RNG.normal(size=(N, 3)), axis=1)
WIDE = sp.random_array((30, 200), density=0.1, rng=RNG, format="csr")
LARGE = RNG.normal(size=(700, 50))  # work enough for two threads
SIGN = np.where(Y, 1.0, -1.0)


def fitted(model, rows=X, target=Y):
    """A case that fits a model; its result are the coefficients."""

    def fit():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return type(model)(**model.get_params()).fit(rows, target).coef_

    return fit


def rows_of(matrix=X, kind=np.int64):
    if sp.issparse(matrix):
        starts = matrix.indptr.astype(kind)
        return K.Rows(matrix.data, matrix.indices.astype(kind), starts, matrix.shape[1])
    return K.Rows(matrix)


def closing():
    out = np.zeros(8 + 2 * D)
    zero = np.zeros(D + 1)
    K.closing(rows_of(), K.Targets(SIGN), K.Loss("logistic"), 0, N, zero, zero, zero, None, out)
    return out


def gram():
    out = np.zeros((D + 1) ** 2)
    K.gram(rows_of(), 0, N, np.ones(N), np.zeros(D), out)
    return out


def newton(matrix=X, two=False):
    n, d = matrix.shape
    theta, base, step, sums = np.zeros(d + 1), np.zeros(d + 1), np.zeros(d + 1), np.zeros(8 + 2 * d)
    signs = np.where(np.arange(n) % 3, 1.0, -1.0)
    loss = K.Loss("logistic")
    K.newton(
        rows_of(matrix),
        K.Targets(signs),
        loss,
        1.0,
        1e-8,
        50,
        True,
        True,
        two,
        theta,
        base,
        step,
        sums,
    )
    return theta


def factor(n=200):
    A = RNG.normal(size=(n, n))
    A = np.eye(n) + (A @ A.T) / n if n < 10 else np.eye(n) * 2.0 + 0.1
    U, scale, x = np.zeros((n, n)), np.zeros(n), np.zeros(n)
    K.spd_factor(A, False, U, scale)
    K.spd_apply(U, scale, np.ones(n), x)
    K.spd_solve(A, np.ones(n), False, x)
    return x.round(12)


def nnls():
    x, r = np.zeros(N), np.zeros(D)
    K.nnls(X, np.ones(D), 1e-12, 1000, x, r)
    return x


def ascent():
    theta, u = np.zeros(D + 1), np.zeros(N)
    run = K.Ascent(
        rows_of(), K.Targets(SIGN), K.Loss("hinge"), theta, 1.0, 1e-6, True, True, 0, 0.0, 1.0
    )
    for _ in range(5):
        run.epoch()
        run.improve()
    run.point(theta, u)
    return theta


def intercepts():
    z, targets, loss = X[:, 0].copy(), K.Targets(SIGN), K.Loss("hinge")
    u = np.full(N, 0.5)
    best = K.best_intercept(targets, loss, False, z, 0.0, 1.0, 1e-9)
    among = K.best_among(targets, loss, False, np.arange(N), z, u, 0.0, 0.0, 1.0, 1e-9)
    K.balance(targets, loss, z, z, u)
    a, b = np.zeros(N), np.zeros(N)
    K.two_scores(rows_of(), 0, N, np.ones(D), np.ones(D), a, b)
    return np.array([*best, *among, *u, *a])


def softmax():
    W = np.zeros((D + 1, 8))
    classes = K.Classes(THREE.astype(np.int64), None, 3)
    out, p = np.zeros(3 + (D + 1) * 8), np.zeros((3, N))
    K.softmax_sweep(rows_of(), classes, 0, N, W, out, p)
    again = np.zeros((D + 1) * 8)
    K.softmax_hess_vec(rows_of(), classes, 0, N, p, np.ones((D + 1, 8)), again)
    chances = np.zeros((N, 3))
    K.softmaxes(rows_of(), 0, N, W, chances)
    return np.concatenate([out, again, chances.ravel()])


def softmax_passes():
    """Passes that the drivers of larger softmax fits make, at W = 0."""
    W, V, padded = np.zeros((D + 1, 8)), np.ones((D + 1, 8)), (D + 1) * 8
    rows, classes = rows_of(), K.Classes(THREE.astype(np.int64), None, 3)
    p, product, ray, cross = np.zeros((3, N)), np.zeros(padded), np.zeros(4), np.zeros(64)
    K.softmax_sweep(rows, classes, 0, N, W, np.zeros(3 + padded), p)
    K.softmax_product(rows, classes, 0, N, p, W, V, False, product)
    K.softmax_ray(rows, classes, 0, N, W, V, np.array([0.0, 0.5]), ray)
    K.softmax_cross(classes, 0, N, p, cross)
    direction, residual, accuracy = np.zeros((D + 1, 8)), -V, np.array([1.0, 1e-3, 0, 0.1, 0.1, 0])
    K.softmax_steps(
        rows, classes, p, 1.0, True, np.zeros(D), np.eye(D + 1), np.ones((1, D + 1)), accuracy, 3, False,
        V, direction, residual, 0.0,
    )  # fmt: skip
    return np.concatenate([product, ray, cross, direction.ravel()])


def crammer_singer_epoch():
    p, W, state = np.zeros((N, 8)), np.zeros((D + 1, 8)), np.zeros(9)
    classes = K.Classes(THREE.astype(np.int64), None, 3)
    norms = (X**2).sum(axis=1)
    K.crammer_singer_ascend(rows_of(), classes, 0, N, np.arange(N), 1, 1.0, 1.0, norms, p, W, state)
    return W


def crossover():
    theta, u, v = np.zeros(D + 1), np.full(N, 0.5), np.zeros(N)
    K.crossover(
        rows_of(), K.Targets(SIGN), K.Loss("hinge"), 1.0, True, np.zeros(D + 1), 3, theta, u, v
    )
    return np.concatenate([theta, u, v])


def grid_passes():
    part, models = np.arange(N) % 2, np.zeros((D + 1, 8))
    gram, sums = np.zeros(3 * (D + 1) ** 2), np.zeros((9 + 2 * D) * 8)
    K.part_gram(rows_of(), 0, N, part, 2, np.ones(N), np.zeros(D), gram)
    one, loss = np.zeros(1, np.int64), K.Loss("logistic")
    K.grid_closing(
        rows_of(), K.Targets(SIGN), loss, 0, N, part, models, models, one, one, np.zeros((1, 2)), None, one, sums
    )  # fmt: skip
    return np.concatenate([gram, sums])


def libsvm():
    text = b"1 1:1 3:2\n-1 2:0.5\n" * 3
    return linsep.read_libsvm(io.BytesIO(text), n_threads=1).X.toarray()


def repeats():
    indices, starts = np.array([0, 1, 2], np.int64), np.array([0, 2, 3], np.int64)
    return np.array([K.csr_repeats(indices, starts, 100)])


def predicted(model):
    def predict():
        return model.predict_proba(X)

    return predict


CASES = {
    "Rows": lambda: np.array([rows_of(WIDE).n, rows_of(WIDE, np.int32).d]),
    "closing": closing,
    "gram": gram,
    "newton": newton,
    "newton in two threads": lambda: newton(LARGE, True),
    "factors": factor,
    "nnls": nnls,
    "Ascent": ascent,
    "intercepts": intercepts,
    "softmax": softmax,
    "softmax passes": softmax_passes,
    "Crammer-Singer epoch": crammer_singer_epoch,
    "crossover": crossover,
    "grid passes": grid_passes,
    "read_libsvm": libsvm,
    "csr_repeats": repeats,
    "logistic": fitted(linsep.LogisticRegression()),
    "logistic, sparse": fitted(linsep.LogisticRegression(), WIDE, np.arange(30) % 2),
    "hinge": fitted(linsep.LinearSVC()),
    "dual ascent": fitted(linsep.LinearClassifier("squared_hinge", solver="dual-cd")),
    "L1": fitted(linsep.LogisticRegression(l1_ratio=1.0)),
    "L1, wide": fitted(linsep.LogisticRegression(l1_ratio=1.0), WIDE, np.arange(30) % 2),
    "multinomial": fitted(linsep.LogisticRegression(), X, THREE),
    "multinomial, sparse": fitted(linsep.LogisticRegression(), WIDE, np.arange(30) % 3),
    "Crammer-Singer": fitted(linsep.LinearSVC(multiclass="crammer_singer"), X, THREE),
    "absolute": fitted(linsep.LinearRegressor("absolute", C=1.0), X, X[:, 0] + X[:, 1] ** 2),
    "SGD": fitted(linsep.SGDClassifier(epochs=3, random_state=0)),
    "perceptron": fitted(linsep.Perceptron(max_passes=3)),
    "grid": fitted(linsep.LogisticRegressionCV([0.1, 1.0], cv=3)),
    "probabilities": predicted(linsep.LogisticRegression().fit(X, THREE)),
}
