"""What dense and sparse rows have in common."""

import mmap

import numpy as np
import scipy.sparse as sp

from linsep.arrays import dense, memory_owner, n_entries, squares, stack_rows


def test_rows_one_below_another_keep_their_storage():
    A, B = np.arange(6.0).reshape(2, 3), np.eye(3, dtype=np.float32)[:1]
    both = np.vstack([A, B])
    assert np.array_equal(stack_rows([A, B]), both)
    sparse = stack_rows([sp.csr_matrix(A), sp.csr_array(B)])
    assert sparse.format == "csr" and np.array_equal(sparse.toarray(), both)
    assert stack_rows([None, None]) is None


def test_dense_and_sparse_rows_give_the_same_numbers():
    A = np.array([[0.0, -2.0], [3.0, 0.0]])
    rows = sp.csr_array(A)
    assert dense(A) is A and np.array_equal(dense(rows), A)
    assert sp.issparse(squares(rows)) and np.array_equal(squares(rows).toarray(), squares(A))
    assert np.array_equal(squares(A), A**2)
    assert (n_entries(A), n_entries(rows)) == (4, 2)


def test_the_owner_of_memory_is_behind_all_views(tmp_path):
    mapped = np.memmap(tmp_path / "rows", np.float64, "w+", shape=(4, 3))
    assert isinstance(memory_owner(np.asarray(mapped)[1:, ::2].T), mmap.mmap)
    assert memory_owner(np.eye(3)[1:]) is None
