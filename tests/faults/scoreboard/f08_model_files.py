"""F8: model files that are cut, altered, forged, or something else."""

from __future__ import annotations

import functools
import json
import os
import pickle
import struct
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

import linsep
from linsep.errors import BadModelFile
from linsep.model_files import container, to_bytes
from scoreboard.f04_arrays import X, Y
from scoreboard.harness import Case, check, same


@functools.cache
def sound() -> bytes:
    """A model file."""
    return to_bytes(linsep.LogisticRegression().fit(X, Y))


def opens(content: bytes | Callable[[], bytes], library: Any) -> None:
    with open("model.linsep", "wb") as file:
        file.write(content() if callable(content) else content)
    model = linsep.load("model.linsep")
    check(np.isfinite(model.predict_proba(X)).all(), "probabilities that are not finite")


def wrong(name: str, content: bytes | Callable[[], bytes], *words: str) -> Case:
    return Case(name, partial(opens, content), ("model.linsep", *words))


def forged(change: Callable[[dict[str, Any], list[Any]], object]) -> bytes:
    """The file with another manifest or other arrays, and with checksums that are right."""
    manifest, arrays = container.unpack(sound(), "m")
    change(manifest, arrays)
    return container.pack(manifest, arrays)


def set_at(*path: Any) -> Callable[[dict[str, Any], list[Any]], None]:
    *keys, last, value = path

    def change(manifest: dict[str, Any], arrays: list[Any]) -> None:
        place: Any = manifest
        for key in keys:
            place = place[key]
        place[last] = value

    return change


STRANGE: dict[str, Any] = {
    "a number": 7,
    "text": "nonsense",
    "null": None,
    "a list": [1],
    "an object": {"x": 1},
    "true": True,
    "-1": -1,
    "2^63": 2**63,
    "a function": {"record": "os.system", "fields": {}},
    "an array too many": {"array": 99},
    "1e308": 1e308,
    "inf": {"float": "inf"},
    "nan": {"float": "nan"},
    "a tuple": {"tuple": []},
}


def damaged() -> Iterator[Case]:
    size = len(sound())
    for cut in sorted(
        {0, 1, 7, 8, 15, 16, 47, 48, 49, 100, size // 2, size - 65, size - 64, size - 1}
    ):
        yield wrong(f"cut at {cut}", sound()[:cut])
    for at in range(0, size, max(1, size // 40)):
        yield wrong(
            f"bit of byte {at} turned", sound()[:at] + bytes([sound()[at] ^ 1]) + sound()[at + 1 :]
        )
    yield wrong("something at the end", sound() + b"x", "left over")
    yield wrong("zeros at the end", sound() + bytes(64), "left over")
    yield wrong("twice", sound() * 2)
    yield wrong("line ends changed", sound().replace(b"\r\n", b"\n"), "line ends")
    yield wrong("empty", b"", "empty")
    yield wrong("a pickle", pickle.dumps({"a": 1}), "pickle")
    yield wrong("a zip", b"PK\x03\x04" + bytes(100), "zip")
    yield wrong("JSON", b'{"a": 1}' + bytes(60))
    yield wrong(
        "a manifest of 2^62 bytes",
        sound()[:8] + struct.pack("<Q", 2**62) + sound()[16:],
        "too short",
    )
    yield Case("missing", lambda library: linsep.load("model.linsep"), ("model.linsep",))
    yield Case("folder", _folder, ("model.linsep",))
    yield Case("pipe", _pipe, ("model.linsep", "regular file"))
    yield Case("device", lambda library: linsep.load("/dev/zero"), ("/dev/zero", "regular file"))


def _folder(library: Any) -> None:
    os.mkdir("model.linsep")
    linsep.load("model.linsep")


def _pipe(library: Any) -> None:
    os.mkfifo("model.linsep")
    linsep.load("model.linsep")


def forgeries() -> Iterator[Case]:
    manifest, _ = container.unpack(sound(), "m")
    for label, value in STRANGE.items():
        for key in ("linsep", "model", "params", "fitted", "encoder"):
            if key != "linsep":  # free text
                yield _forged(
                    f"{key} is {label}", key, value, either=key == "encoder" and value is None
                )
        for key in sorted(manifest["fitted"]):
            yield _forged(f"{key} is {label}", "fitted", key, value, either=key not in _CHECKED)
    for key in ("coef_", "intercept_", "n_features_in_", "classes_"):
        yield wrong(f"{key} lacks", partial(forged, lambda m, a, key=key: m["fitted"].pop(key)))
    for name in ("__class__", "__init__", "predict", "fit", "_fits.append", "", "a b", "coef_ "):
        yield _forged(
            f"an attribute {name!r}",
            "fitted",
            name,
            1,
            either=name in ("a b", "", "coef_ ", "_fits.append"),
        )
    for key in ("model", "params", "fitted", "encoder", "linsep"):
        yield wrong(f"no {key}", partial(forged, lambda m, a, key=key: m.pop(key)), key)
    yield wrong("one key more", partial(forged, set_at("more", 1)), "more")
    yield wrong("an unknown estimator", partial(forged, set_at("model", "Pipeline")), "Pipeline")
    yield wrong("an unknown parameter", partial(forged, set_at("params", "magic", 1)), "magic")
    yield wrong(
        "another class too many",
        partial(forged, set_at("fitted", "classes_", {"strings": ["a", "b", "c"], "dtype": "str"})),
        "classes",
    )
    yield wrong(
        "strings of 15 GB",
        partial(
            forged,
            set_at(
                "fitted", "classes_", {"strings": ["x" * 100_000, *[""] * 99_999], "dtype": "str"}
            ),
        ),
        "64 MB",
    )
    yield wrong("NaN among the coefficients", partial(forged, lambda m, a: a[0].fill(np.nan)))
    yield wrong(
        "deep nesting",
        partial(forged, set_at("params", "C", functools.reduce(lambda x, _: [x], range(500), 1))),
        "nested",
    )
    yield wrong("format 99", _format(99), "format 99", "newer")
    yield wrong("format 0", _format(0), "format")
    yield wrong("format text", _format("2"), "format")


#: Attributes that are checked when a file is opened; others are data that nothing is computed from without checks.
_CHECKED = ("coef_", "intercept_", "n_features_in_", "classes_", "_fits")


def _forged(name: str, *change: Any, either: bool = False) -> Case:
    return Case(
        name, partial(opens, partial(forged, set_at(*change))), ("model.linsep",), either=either
    )


def _format(number: Any) -> bytes:
    _, length, _ = struct.unpack_from("<8sQ32s", sound())
    manifest = json.loads(sound()[48 : 48 + length])
    manifest["format"] = number
    text = json.dumps(manifest).encode()
    import hashlib

    head = struct.pack("<8sQ32s", b"LINSEP\r\n", len(text), hashlib.sha256(text).digest()) + text
    rest = sound()[48 + length + -(48 + length) % 64 :]
    return head + bytes(-len(head) % 64) + rest


def round_trips() -> Iterator[Case]:
    for name in (
        "LogisticRegression",
        "LinearSVC",
        "LinearClassifier",
        "LinearRegressor",
        "Perceptron",
        "SGDClassifier",
        "LogisticRegressionCV",
        "LinearSVCCV",
    ):
        yield Case(f"{name} comes back", partial(_round_trip, name), slow=name.endswith("CV"))
    yield Case("a pickle runs nothing", _no_code)
    yield Case(
        "not fitted", lambda library: linsep.save(linsep.LogisticRegression(), "m"), ("not fitted",)
    )
    yield Case("no model", lambda library: linsep.save({}, "m"), ("dict", "cannot be saved"))
    yield Case(
        "folder that is not there", lambda library: linsep.save(_model(), "no/such/m"), ("no/such",)
    )
    yield Case("full disk", lambda library: linsep.save(_model(), "/dev/full"), ("No space left",))


def _model() -> Any:
    return linsep.LogisticRegression().fit(X, Y)


def _round_trip(name: str, library: Any) -> None:
    model = getattr(linsep, name)().fit(X, Y)
    linsep.save(model, "m.linsep")
    again = linsep.load("m.linsep")
    same(again.predict(X), model.predict(X))
    same(again.get_params().keys(), model.get_params().keys())


class _Bomb:
    def __reduce__(self) -> Any:
        return os.mkdir, ("exploded",)


def _no_code(library: Any) -> None:
    with open("m.linsep", "wb") as file:
        pickle.dump(_Bomb(), file)
    try:
        linsep.load("m.linsep")
    except BadModelFile:
        check(not os.path.exists("exploded"), "code was run")
        return
    check(False, "a pickle was accepted")


def cases() -> Iterator[Case]:
    yield from damaged()
    yield from forgeries()
    yield from round_trips()
