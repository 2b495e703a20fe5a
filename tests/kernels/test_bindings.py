"""All bindings at once: their stub is current, and none of them writes to a converted copy of an output."""

import ast
import ctypes
import os
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest

import linsep
from linsep import _kernels as K  # noqa: N812

STUB = Path(linsep.__file__).with_name("_kernels.pyi")
TYPES = {
    "float64": np.float64,
    "float32": np.float32,
    "int64": np.int64,
    "int32": np.int32,
    "uint8": np.uint8,
}


def test_tables_of_types_are_not_shared_with_other_modules():
    """Objects that another module made with nanobind leaks are not reported as ours when Python ends."""
    state = ctypes.pythonapi.PyInterpreterState_GetDict
    state.restype, state.argtypes = ctypes.py_object, [ctypes.c_void_p]
    ctypes.pythonapi.PyInterpreterState_Get.restype = ctypes.c_void_p
    keys = map(str, state(ctypes.pythonapi.PyInterpreterState_Get()))
    assert any(key.startswith("__nb_internals") and "linsep" in key for key in keys)


def test_the_stub_is_current(tmp_path):
    command = [
        sys.executable,
        "-m",
        "nanobind.stubgen",
        "-q",
        "-m",
        "linsep._kernels",
        "-o",
        str(tmp_path / "made.pyi"),
    ]
    subprocess.run(command, check=True)
    made, kept = (described(path.read_text()) for path in (tmp_path / "made.pyi", STUB))
    assert made == kept, "`make stub` writes it anew"


def described(stub):
    """Names, arguments and docstrings of a stub: what versions of the generator agree on."""
    found = {}
    for owner in ast.walk(ast.parse(stub)):
        for node in getattr(owner, "body", ()):
            if isinstance(node, ast.FunctionDef):
                name = f"{getattr(owner, 'name', '')}.{node.name}"
                arguments = [each.arg for each in node.args.args]
                found.setdefault(name, []).append((arguments, ast.get_docstring(node)))
    return found


def functions():
    """Every bound function and method of the stub, as (name, arguments)."""
    for node in ast.parse(STUB.read_text()).body:
        if isinstance(node, ast.FunctionDef):
            yield node.name, node.args.args
        elif isinstance(node, ast.ClassDef):
            for method in node.body:
                if (
                    isinstance(method, ast.FunctionDef)
                    and not method.name.startswith("_")
                    and not method.decorator_list
                ):
                    yield f"{node.name}.{method.name}", method.args.args[1:]


class Argument:
    """One argument of a binding: its annotation in the stub, and a value that its type accepts."""

    def __init__(self, argument):
        self.name, self.text = argument.arg, ast.unparse(argument.annotation)
        self.array = "NDArray" in self.text
        self.written = self.array and "writable=False" not in self.text
        self.kind = next((TYPES[name] for name in TYPES if name in self.text), np.float64)
        self.dimensions = 2 if "shape=(None, None)" in self.text else 1

    def value(self):
        plain = {
            "Rows": ROWS,
            "Targets": TARGETS,
            "Loss": LOSS,
            "Classes": CLASSES,
            "int": 0,
            "float": 0.0,
            "bool": False,
            "str": "",
        }
        return np.zeros((2,) * self.dimensions, self.kind) if self.array else plain[self.text]

    def copies(self):
        """Arrays that only a converted copy would turn into the output."""
        right = self.value()
        yield right.astype(np.float16)  # of which no overload takes any
        if "order='C'" in self.text:
            yield np.zeros((4,) * self.dimensions, self.kind)[
                (slice(None, None, 2),) * self.dimensions
            ]
        frozen = right.copy()
        frozen.flags.writeable = False
        yield frozen


ROWS, TARGETS, LOSS, CLASSES = (
    K.Rows(np.zeros((2, 1))),
    K.Targets(np.ones(2)),
    K.Loss("hinge"),
    K.Classes(np.arange(2), None, 2),
)
OUTPUTS = [
    (name, arguments)
    for name, arguments in functions()
    if any(Argument(a).written for a in arguments)
]


def test_outputs_are_found():
    """The list is not empty, and holds those that once were lost in copies."""
    names = {name for name, _ in OUTPUTS}
    assert {
        "sweep",
        "closing",
        "softmax_sweep",
        "softmax_newton",
        "libsvm_read",
        "Ascent.point",
    } <= names
    assert len(names) > 55


@pytest.mark.parametrize(("name", "arguments"), OUTPUTS, ids=[name for name, _ in OUTPUTS])
def test_no_output_is_written_to_a_copy(name, arguments):
    arguments = [Argument(argument) for argument in arguments]
    owner = (
        K.Ascent(ROWS, TARGETS, LOSS, np.zeros(2), 1.0, 1e-3, True, False, 0, 1e9, 2.0)
        if "." in name
        else K
    )
    function = getattr(owner, name.rpartition(".")[2])
    values = [argument.value() for argument in arguments]
    try:
        function(*values)
    except ValueError:
        pass  # sizes or names that do not fit are found after the types were accepted
    for at, argument in enumerate(arguments):
        for copy in argument.copies() if argument.written else ():
            with pytest.raises(TypeError, match="incompatible function arguments"):
                function(*values[:at], copy, *values[at + 1 :])


def test_the_environment_chooses_the_instruction_set():
    """Of the installed module, which may hold other sets than the one under test (.ci/sanitize.py)."""
    program = (
        "from linsep import _kernels as K; print(K.instruction_set(), K.instruction_sets()[-1])"
    )

    def imported(name):
        environment = os.environ | {"LINSEP_INSTRUCTION_SET": name}
        return subprocess.run(
            [sys.executable, "-c", program],
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )

    for name in K.instruction_sets():
        assert imported(name).stdout.split()[0] == name
    chosen, best = imported("").stdout.split()
    assert chosen == best
    unknown = imported("abacus")
    assert (
        unknown.returncode
        and "LINSEP_INSTRUCTION_SET: no instruction set named 'abacus'" in unknown.stderr
    )
    assert K.instruction_sets()[0] in unknown.stderr


def test_wide_matrices_are_refused():
    """The square of d + 1 must be countable."""
    none, start = np.zeros(0), np.zeros(1, np.int64)
    with pytest.raises(ValueError, match="fewer than"):
        K.Rows(none, np.zeros(0, np.int64), start, 2**32 - 1)


@pytest.mark.parametrize(
    "x", [[np.nan] * 5, [1.0, np.nan, np.nan, 2.0, np.nan], [np.nan, 1.0, 2.0, 3.0, 4.0]]
)
def test_a_quantile_of_nan_ends(x):
    K.quantile(np.array(x), np.ones(5), 2.5)
    K.quantile(np.arange(5.0), np.ones(5), np.nan)


@pytest.mark.parametrize(
    "counts",
    [[-1, 0, 0, 0, -1], [6, 0, 0, 0, -1], [0, 0, -1, 0, -1], [0, 0, 0, 0, 5], [0, 0, 0, 0]],
)
def test_a_damaged_state_of_the_perceptron_is_refused(counts):
    rows, n, d = K.Rows(np.zeros((5, 2))), 5, 2
    record = np.zeros(3, np.int64), np.zeros(3)
    with pytest.raises(ValueError, match="counts are"):
        K.perceptron(
            rows, np.ones(n), np.ones(n), "cyclic", False, True, False, 9, 9, None,
            np.zeros(d + 1), np.array(counts, np.int64), np.zeros(2), *record, None,
        )  # fmt: skip


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_an_ascent_goes_on_after_a_fork():
    """Its second thread does not exist in the child, which starts one of its own."""
    rng = np.random.default_rng(0)
    X, sign = rng.normal(size=(400, 6)), np.where(rng.random(400) < 0.5, -1.0, 1.0)
    ascent = K.Ascent(
        K.Rows(X), K.Targets(sign), K.Loss("hinge"), np.zeros(7), 1.0, 1e-6, True, True, 0, 1.0, 2.0
    )
    ascent.epoch()
    ascent.restart(ascent.u.copy(), 0.0)  # one pass in two parts: the thread runs
    here, there = os.pipe()
    with warnings.catch_warnings():
        # Python 3.12 warns of any fork beside a thread.
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child == 0:
        ascent.restart(ascent.u.copy(), 0.0)
        os.write(there, ascent.theta.tobytes())
        os._exit(0)
    ascent.restart(ascent.u.copy(), 0.0)
    assert os.read(here, 56) == ascent.theta.tobytes()
    assert os.waitpid(child, 0)[1] == 0
    os.close(here)
    os.close(there)
