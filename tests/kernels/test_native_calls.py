"""Every native function that takes memory is among the calls whose allocations tests/sanitizers lets fail."""

import re
from pathlib import Path

from native_calls import CASES

from linsep import _kernels as K  # noqa: N812

BINDINGS = Path(__file__).resolve().parents[2] / "kernels" / "bindings"
FUNCTION = re.compile(r"^[A-Za-z_][^\n;{}]*?\b(\w+)\([^;{}]*\)[^;{}]*\{\n(.*?)^\}", re.M | re.S)


def functions_with_scratch_memory():
    """Names of the bound functions whose text asks for memory."""
    texts = [path.read_text("utf-8") for path in sorted(BINDINGS.glob("*.cpp"))]
    bound = {name for text in texts for name in re.findall(r'm\.def\(\s*"(\w+)"', text)}
    asks = re.compile(r"\b(?:scratch|in_arena)\(")
    return {
        name for text in texts for name, body in FUNCTION.findall(text) if asks.search(body)
    } & bound


def test_every_function_that_takes_memory_is_called(monkeypatch):
    wanted, called = functions_with_scratch_memory(), set()
    assert len(wanted) >= 30 and {"newton", "gram", "softmax_steps"} <= wanted

    def recorded(name):
        function = getattr(K, name)

        def call(*arguments, **named):
            called.add(name)
            return function(*arguments, **named)

        return call

    for name in wanted:
        monkeypatch.setattr(K, name, recorded(name))
    for call in CASES.values():
        call()
    assert called == wanted
