"""What the kernels refuse: a wrong size or a damaged matrix is an error, never a crash."""

import os

import numpy as np
import pytest
from catalogue import INSTRUCTION_SETS

from linsep import _kernels as K  # noqa: N812


def test_instruction_sets():
    before = K.instruction_set()
    assert before == (os.environ.get("LINSEP_INSTRUCTION_SET") or INSTRUCTION_SETS[-1])
    with pytest.raises(ValueError, match="instruction set"):
        K.use_instruction_set("abacus")
    assert K.instruction_set() == before


def csr(data, indices, indptr, columns=3, kind=np.int32):
    return K.Rows(np.array(data, float), np.array(indices, kind), np.array(indptr, kind), columns)


@pytest.mark.parametrize("kind", [np.int32, np.int64])
@pytest.mark.parametrize(
    ("data", "indices", "indptr", "complaint"),
    [
        ([1, 2], [0, -1], [0, 2], "out of range"),
        ([1, 2], [0, 3], [0, 2], "out of range"),
        ([1, 2], [0, 2**31 - 1], [0, 2], "out of range"),
        ([1, 2], [0, 1], [0, 2, 1, 2], "decrease"),
        ([1, 2], [0, 1], [0, -1, 2], "decrease"),
        ([1, 2], [0, 1], [1, 2], "begin with 0"),
        ([1, 2], [0, 1], [0, 3], "beyond"),
        ([1, 2, 3], [0, 1], [0, 2], "length"),
        ([1, 2], [0, 1], [], "three 1-D arrays"),
    ],
)
def test_damaged_csr_is_refused(data, indices, indptr, complaint, kind):
    with pytest.raises(ValueError, match=complaint):
        csr(data, indices, indptr, kind=kind)


def test_csr_needs_numbers_and_columns_of_known_kinds():
    ints, floats = np.zeros(1, np.int32), np.zeros(1)
    assert K.Rows(floats, ints, np.array([0, 1], np.int64), 1).n == 1
    assert K.Rows(floats, ints.astype(np.int64), np.array([0, 1], np.int32), 1).n == 1
    with pytest.raises(ValueError, match="int32 or int64"):
        K.Rows(floats, ints.astype(np.int16), np.array([0, 1], np.int16), 1)
    with pytest.raises(ValueError, match="float32 or float64"):
        K.Rows(ints, ints, np.array([0, 1], np.int32), 1)
    with pytest.raises(ValueError, match="out of range"):
        csr([1], [0], [0, 1], columns=0)
    with pytest.raises(ValueError, match="columns"):
        csr([], [], [0], columns=-1)
    unused = csr([1, 2, np.nan], [0, 1, 99], [0, 2])  # entries beyond the last row are nobody's
    z = np.zeros(1)
    K.scores(unused, 0, 1, np.ones(4), z)
    assert z[0] == 4.0


@pytest.mark.parametrize("X", [np.zeros(3), np.zeros((2, 2, 2)), np.zeros((2, 2), np.int32)])
def test_dense_rows_are_matrices_of_floats(X):
    with pytest.raises(ValueError, match="dense rows"):
        K.Rows(X)


def test_lengths_are_checked():
    rows, n, d = K.Rows(np.zeros((5, 3))), 5, 3
    targets, loss = K.Targets(np.ones(n)), K.Loss("logistic")
    v, o, t, h = np.zeros, np.zeros, np.zeros(d + 1), np.zeros(n)
    wrong = {
        K.sweep: [
            (rows, targets, loss, 0, n, v(d), o(d + 2)),
            (rows, targets, loss, 0, n, v(d + 2), o(d + 2)),
            (rows, targets, loss, 0, n, t, o(d + 1)),
            (rows, targets, loss, 0, n, t, o(d + 2), o(n - 1)),
            (rows, targets, loss, 0, n, t, o(0), None, False),
            (rows, K.Targets(np.ones(n + 1)), loss, 0, n, t, o(d + 2)),
            (rows, targets, loss, -1, n, t, o(d + 2)),
            (rows, targets, loss, 3, 2, t, o(d + 2)),
            (rows, targets, loss, 0, n + 1, t, o(d + 2)),
        ],
        K.closing: [
            (rows, targets, loss, 0, n, v(d), t, t, None, o(8 + 2 * d)),
            (rows, targets, loss, 0, n, t, v(d), t, None, o(8 + 2 * d)),
            (rows, targets, loss, 0, n, t, t, v(d), None, o(8 + 2 * d)),
            (rows, targets, loss, 0, n, t, t, t, v(n - 1), o(8 + 2 * d)),
            (rows, targets, loss, 0, n, t, t, t, None, o(7 + 2 * d)),
        ],
        K.gram: [
            (rows, 0, n, v(n - 1), v(d), o(16)),
            (rows, 0, n, h, v(d - 1), o(16)),
            (rows, 0, n, h, v(d), o(15)),
            (rows, 0, n + 1, h, v(d), o(16)),
        ],
        K.hess_vec: [
            (rows, 0, n, v(n - 1), t, o(d + 1)),
            (rows, 0, n, h, v(d), o(d + 1)),
            (rows, 0, n, h, t, o(d)),
        ],
        K.combine: [(rows, 0, n, v(n + 1), o(d + 1)), (rows, 0, n, h, o(d))],
        K.moments: [(rows, 0, n, v(n - 1), o(2 * d + 1)), (rows, 0, n, None, o(2 * d))],
        K.scores: [(rows, 0, n, v(d), o(n)), (rows, 0, n, t, o(n - 1))],
        K.ray: [
            (rows, targets, loss, 0, n, v(d), t, v(2), o(4)),
            (rows, targets, loss, 0, n, t, v(d), v(2), o(4)),
            (rows, targets, loss, 0, n, t, t, v(2), o(3)),
        ],
        K.row_norms: [(rows, 0, n, o(n - 1)), (rows, 0, n + 1, o(n + 1))],
        K.pointwise: [(loss, v(3), o(3), o(3), o(3), o(2)), (loss, v(3), o(2), o(3), o(3), o(3))],
        K.newton: [
            (rows, targets, loss, 1.0, 0.1, 9, True, True, True, o(d), o(d + 1), o(d + 1), o(14)),
            (rows, targets, loss, 1.0, 0.1, 9, True, True, True, o(d + 1), o(d), o(d + 1), o(14)),
            (rows, targets, loss, 1.0, 0.1, 9, True, True, True, o(d + 1), o(d + 1), o(d), o(14)),
            (
                rows,
                targets,
                loss,
                1.0,
                0.1,
                9,
                True,
                True,
                True,
                o(d + 1),
                o(d + 1),
                o(d + 1),
                o(13),
            ),
        ],
        K.Targets: [(v(3), v(2)), (v(3), None, v(4))],
        K.Loss: [("no such loss",)],
    }
    for kernel, calls in wrong.items():
        for args in calls:
            with pytest.raises(ValueError, match=r"has|have|differ|out of range|no native loss"):
                kernel(*args)


HUGE = 2**60  # rows that cost no memory, having no columns


def test_sizes_beyond_64_bits_are_refused():
    rows, short = K.Rows(np.empty((HUGE, 0), np.float32)), np.zeros(16)
    with pytest.raises(ValueError, match="more entries than 64 bits count"):
        K.scores_k(rows, 0, HUGE, np.zeros((1, 8)), short)
    with pytest.raises(ValueError, match="z has an entry per row"):
        K.scores(rows, 0, HUGE, np.zeros(1), short)
    with pytest.raises(ValueError, match="p has a row"):
        K.softmaxes(rows, 0, HUGE, np.zeros((1, 8)), np.zeros((1, 3)))
    few = K.Rows(np.zeros((1, 1)))
    for k in (0, -1, 2**24 + 1, 2**63 - 1):
        with pytest.raises(ValueError, match="classes"):
            K.softmax_chunk(few, k)
        with pytest.raises(ValueError, match="classes"):
            K.Classes(np.zeros(0, np.int64), None, k)
    for parts in (-1, 2**63 - 1):
        with pytest.raises(ValueError, match=r"parts|64 bits"):
            K.part_gram(few, 0, 1, np.zeros(1, np.int64), parts, np.ones(1), np.ones(1), short)
    with pytest.raises(ValueError, match="column per row"):
        K.ipm_central(K.Loss("hinge"), 0, 2**62, 1.0, np.zeros((10, 4)))
    with pytest.raises(ValueError, match="2\\^62"):
        sgd(few, first=2**63 - 1)
    A = np.empty((2**50, 0))
    with pytest.raises((ValueError, MemoryError)):
        K.nnls(A, np.zeros(0), 1e-9, 1, short, np.zeros(0))


def sgd(rows, first):
    """No steps of a descent."""
    classes, loss = K.Classes(np.zeros(1, np.int64), None, 2), K.Loss("hinge")
    one, none, W = np.ones(1), np.zeros(0, np.int64), np.zeros((1, 2))
    K.sgd(rows, classes, loss, "constant", one, one, 0.0, 1.0, 1, first, True, none, W, None)


def test_numbers_must_be_aligned():
    shifted = np.frombuffer(bytes(1 + 8 * 6), offset=1).reshape(3, 2)
    with pytest.raises(ValueError, match="not aligned"):
        K.Rows(shifted)
    with pytest.raises(ValueError, match="not aligned"):
        K.Rows(shifted.ravel(), np.zeros(6, np.int32), np.array([0, 6], np.int32), 1)


@pytest.mark.parametrize("n", [1, 2, 7, 8, 9, 33])
def test_spd_solve_is_a_linear_solver(n):
    rng = np.random.default_rng(n)
    scales = 10.0 ** rng.integers(-6, 7, n)
    A = rng.normal(size=(2 * n, n)) * scales
    H, b, x = A.T @ A, rng.normal(size=n) * scales, np.empty(n)
    K.spd_solve(H, b, False, x)
    np.testing.assert_allclose((H @ x) / scales, b / scales, rtol=1e-7, atol=1e-7)


def test_spd_solve_leaves_dependent_columns_alone_when_asked():
    rng = np.random.default_rng(0)
    A = rng.normal(size=(20, 3))
    A = np.column_stack([A, A[:, 0], np.zeros(20)])
    H, x = A.T @ A, np.empty(5)
    b = H @ np.array([1.0, 2.0, 3.0, 0.0, 0.0])
    K.spd_solve(H, b, True, x)
    np.testing.assert_allclose(x, [1, 2, 3, 0, 0], atol=1e-9)
    with pytest.raises(ValueError, match="square"):
        K.spd_solve(np.zeros((2, 3)), np.zeros(2), True, np.zeros(2))
