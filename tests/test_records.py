"""Frozen dataclasses with a fast constructor behave like those of the standard library."""

import inspect
import pickle
from dataclasses import FrozenInstanceError, dataclass, field, fields, replace

import pytest

from linsep.certificates import Optimality
from linsep.problem.recipe import Recipe
from linsep.records import fast_constructor
from linsep.solution import Linearised, TraceRecord
from linsep.train import Fit


@dataclass(frozen=True)
class Plain:
    a: float
    b: str = "x"
    c: tuple[int, ...] = ()


@fast_constructor
@dataclass(frozen=True)
class Fast:
    a: float
    b: str = "x"
    c: tuple[int, ...] = ()


def test_same_signature_fields_and_text():
    assert inspect.signature(Fast) == inspect.signature(Plain)
    assert repr(Fast(1.0, c=(2,))) == repr(Plain(1.0, c=(2,))).replace("Plain", "Fast")
    assert vars(Fast(1.0)) == vars(Plain(1.0)) == {"a": 1.0, "b": "x", "c": ()}


def test_equality_hash_copies_and_pickles():
    one = Fast(1.0, "y")
    assert one == Fast(1.0, "y") != Fast(1.0)
    assert hash(one) == hash(Fast(1.0, "y"))
    assert replace(one, c=(3,)) == Fast(1.0, "y", (3,))
    assert pickle.loads(pickle.dumps(one)) == one


def test_fields_cannot_be_set():
    one = Fast(1.0)
    with pytest.raises(FrozenInstanceError):
        one.a = 2.0
    with pytest.raises(TypeError):
        Fast()
    with pytest.raises(TypeError):
        Fast(1.0, d=2)


def test_refuses_what_it_would_leave_out():
    with pytest.raises(AssertionError):

        @fast_constructor
        @dataclass(frozen=True)
        class Made:
            a: list[int] = field(default_factory=list)

    with pytest.raises(AssertionError):

        @fast_constructor
        @dataclass(frozen=True)
        class Checked:
            a: int

            def __post_init__(self) -> None: ...


@pytest.mark.parametrize("kind", [Optimality, Recipe, Fit, TraceRecord, Linearised])
def test_every_field_of_the_library_is_stored(kind):
    values = {f.name: object() for f in fields(kind)}
    assert vars(kind(**values)) == values
