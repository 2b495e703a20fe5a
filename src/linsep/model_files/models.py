"""``save`` and ``load``: fitted models in files that contain data and never code.

All fitted attributes are saved. An estimator may declare attributes to leave out (``_not_saved``) and
additional dataclasses that its attributes contain (``_saved_records``).
"""

from __future__ import annotations

import hashlib
import os
from dataclasses import replace
from importlib.metadata import version
from typing import Any

import numpy as np
import scipy.sparse as sp
import sklearn
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.utils.validation import check_is_fitted

from linsep import estimators
from linsep.arguments import flag, pair
from linsep.arrays import dense
from linsep.certificates import Optimality
from linsep.data import Location, location_of
from linsep.errors import BadInput, BadModelFile, Refused
from linsep.estimators.scoring import dense_coef
from linsep.model_files import container
from linsep.model_files.steps import StepReader, StepWriter, check_attribute_names, warn_of_version
from linsep.paths import replace_file
from linsep.penalties import GroupElasticNet
from linsep.pipelines import take_apart
from linsep.separability import Inseparable, Separable, Undecided
from linsep.solution import Explicit, Linearised
from linsep.tables import Encoder
from linsep.train import Fit
from linsep.zero_one import ZeroOne

LARGEST_DIGEST = 5e8  #: entries of X up to which computing a digest takes only seconds
_KEYS = {"linsep", "model", "params", "fitted", "encoder"}


def kinds() -> dict[str, type[Any]]:
    """Return the estimators that a model file may contain, by name."""
    public = {name: getattr(estimators, name) for name in estimators.__all__}
    return {name: kind for name, kind in public.items() if hasattr(kind, "fit")}


_CERTIFICATES = (Optimality, ZeroOne, Separable, Inseparable, Undecided, type(None))


def save(
    model: Any, path: str | os.PathLike[str], *, data: Any = None, include_dual: bool = True
) -> None:
    """Write a fitted model to a file that :func:`load` opens.

    The file contains parameters, coefficients, classes, column names, the certificate and the dual
    point that proves it, as JSON and raw numbers with checksums; nothing in it is code. It is
    written completely or not at all.

    Parameters
    ----------
    model : fitted estimator, or Pipeline that ends in one
        The steps of a pipeline may be linsep's and scikit-learn's scalers, imputers, encoders and text vectorizers,
        combined by ``ColumnTransformer``, ``FeatureUnion`` or ``Pipeline``, without functions of your own.
    path : path
        File to write, by convention with the suffix ``.linsep``. An existing file is replaced.
    data : tuple (X, y), optional
        The training data, of which only a SHA-256 is stored, in ``data_digest_``. For a pipeline with steps other
        than an Encoder, it is the digest of the transformed rows.
    include_dual : bool, default True
        Whether to store one dual variable per row if the proof needs them. Without them the file is
        smaller, but ``verify`` may be unable to repeat the proof.

    Raises
    ------
    Refused
        If the file format does not support the model or a step of the pipeline.

    See Also
    --------
    load : Open a model file.
    export : SQL, C, Python, ONNX.

    Examples
    --------
    >>> import os, tempfile
    >>> import linsep
    >>> model = linsep.LogisticRegression().fit([[0.0], [1.0]], ["no", "yes"])
    >>> path = os.path.join(tempfile.mkdtemp(), "model.linsep")
    >>> linsep.save(model, path)
    >>> linsep.load(path).predict([[2.0]])
    array(['yes'], dtype='<U3')
    """
    content = _pieces(model, data, include_dual)
    with replace_file(path) as stream:
        stream.writelines(content)


def load(path: str | os.PathLike[str]) -> Any:
    """Open a model file that :func:`save` wrote. Loading never runs code from the file.

    Parameters
    ----------
    path : path
        The model file.

    Returns
    -------
    estimator or Pipeline
        The fitted model, ready for ``predict`` and ``verify``.

    Warns
    -----
    sklearn.exceptions.InconsistentVersionWarning
        If the steps of a pipeline were saved under another version of scikit-learn.

    Raises
    ------
    BadModelFile
        If the file is damaged, forged, not a model, or written by a newer version.

    See Also
    --------
    save : Write a model file.

    Examples
    --------
    >>> import os, tempfile
    >>> import linsep
    >>> path = os.path.join(tempfile.mkdtemp(), "model.linsep")
    >>> linsep.save(linsep.LogisticRegression().fit([[0.0], [1.0]], ["no", "yes"]), path)
    >>> linsep.load(path).predict([[2.0]])
    array(['yes'], dtype='<U3')
    """
    return from_bytes(container.read(path), os.fspath(path))


def to_bytes(model: Any, *, data: Any = None, include_dual: bool = True) -> bytes:
    """Return the content of a model file as bytes."""
    return b"".join(_pieces(model, data, include_dual))


def _pieces(model: Any, data: Any, include_dual: bool) -> list[bytes | memoryview]:
    flag("include_dual", include_dual)
    encoder, estimator, stepped = _parts(model)
    name = type(estimator).__name__
    check_is_fitted(estimator, "coef_")
    params = estimator.get_params(deep=False)
    left_out = {*params, *getattr(estimator, "_not_saved", ())}
    fitted = {key: value for key, value in vars(estimator).items() if key not in left_out}
    fitted["coef_"] = dense_coef(estimator)
    if data is not None:
        X, y = pair("data", data, "(X, y)")
        fitted["data_digest_"] = digest(take_apart(model).transform(X) if stepped else X, y)
    if not include_dual and "_fits" in fitted:
        fitted["_fits"] = [_without_rows(fit) for fit in fitted["_fits"]]
    writer = StepWriter(estimator, getattr(estimator, "_saved_records", ()))
    manifest: dict[str, Any] = {
        "linsep": version("linsep"),
        "model": name,
        "params": {
            key: writer.value(value, f"the parameter {key}")
            for key, value in sorted(params.items())
        },
        "fitted": {
            key: writer.value(value, f"the attribute {key}")
            for key, value in sorted(fitted.items())
        },
        "encoder": None if encoder is None else encoder.to_dict(),
    }
    if stepped:
        steps = writer.value(model, "the pipeline")
        manifest["steps"] = {"scikit_learn": sklearn.__version__, "pipeline": steps}
    return container.pieces(manifest, writer.arrays)


def from_bytes(content: bytes, name: str = "<bytes>") -> Any:
    """Restore the model from the content of a model file, called ``name`` in messages."""
    manifest, arrays = container.unpack(content, name)
    try:
        if set(manifest) - {"steps"} != _KEYS:
            odd = sorted((set(manifest) - {"steps"}) ^ _KEYS)
            raise BadModelFile(f"the manifest has missing or unknown keys: {', '.join(odd)!r:.80}.")
        return _restore(manifest, arrays)
    except BadModelFile as error:
        raise BadModelFile(f"{name} is not a valid model file: {error}") from error
    except RecursionError as error:
        raise BadModelFile(f"{name} is not a valid model file: it is nested too deeply.") from error


def digest(X: Any, y: Any) -> str:
    """Return the SHA-256 of the rows and the target, independent of how the rows are stored. One pass."""
    found = hashlib.sha256()
    if location_of(X) is Location.DISK:
        X = getattr(X, "rows", X)
    elif sp.issparse(X):
        X = sp.csr_array(X).sorted_indices()
    else:
        X = np.asarray(X)
    if len(X.shape) != 2:
        raise BadInput(f"data must be the rows and labels of a fit, got rows of shape {X.shape}.")
    step = max(1, (1 << 20) // max(X.shape[1], 1))
    found.update(repr(X.shape).encode())
    for start in range(0, X.shape[0], step):
        block = dense(X[start : start + step])
        found.update((np.ascontiguousarray(block, "<f8") + 0.0).tobytes())
    found.update(repr(np.asarray(y).tolist()).encode())
    return f"sha256:{found.hexdigest()}"


def _parts(model: Any) -> tuple[Encoder | None, Any, bool]:
    """Return the encoder if it is the only step, the model, and whether there are other steps."""
    opened = take_apart(model)
    encoder, stepped = None, isinstance(model, Pipeline)
    if opened.steps is not None and [type(step) for _, step in opened.steps.steps] == [Encoder]:
        encoder, stepped = opened.steps[0], False
    model = opened.model
    if type(model) not in kinds().values():
        if type(model).__module__.startswith("linsep.sklearn"):
            raise Refused(
                f"A {type(model).__name__} of linsep.sklearn is saved as scikit-learn's own is, with skops "
                "(skops.io.dump) or joblib; its certificate_ is kept."
            )
        raise Refused(
            f"A {type(model).__module__.split('.')[0]} {type(model).__name__} cannot be saved; a model file holds "
            "one of "
            f"{', '.join(kinds())}."
        )
    return encoder, model, stepped


def _without_rows(fit: Fit) -> Fit:
    """Return the fit with a dual point that needs no number per row: the slopes of the loss at W."""
    if not isinstance(fit.dual, Explicit):
        return fit
    return replace(fit, dual=Linearised(fit.W, np.zeros_like(fit.W)))


def _restore(manifest: dict[str, Any], arrays: container.Arrays) -> Any:
    kind = kinds().get(manifest["model"]) if isinstance(manifest["model"], str) else None
    if kind is None:
        raise BadModelFile(
            f"it holds a {manifest['model']!r:.60}, but this version of linsep reads "
            f"{', '.join(kinds())}; a newer one may read more."
        )
    params, fitted = manifest["params"], manifest["fitted"]
    if not isinstance(params, dict) or not isinstance(fitted, dict):
        raise BadModelFile("params and fitted must be objects.")
    reader = StepReader(arrays, getattr(kind, "_saved_records", ()))
    known = kind().get_params(deep=False)
    if not set(params) <= set(known):
        raise BadModelFile(f"unknown parameters {sorted(set(params) - set(known))!r:.80}.")
    model = kind(**{key: reader.value(node) for key, node in params.items()})
    state = {key: reader.value(node) for key, node in fitted.items()}
    check_attribute_names(state)
    _check(state, classifier=hasattr(kind, "decision_function"))
    vars(model).update(state)
    reader.model = model
    whole = _pipeline(manifest["steps"], reader) if "steps" in manifest else model
    if len(reader.used) < len(arrays):
        raise BadModelFile(f"{len(arrays) - len(reader.used)} of its arrays belong to nothing.")
    if manifest["encoder"] is None:
        return whole
    if whole is not model:
        raise BadModelFile("it has an encoder outside of its steps.")
    encoder = Encoder.from_dict(manifest["encoder"])
    width = sum(encoding.width for encoding in encoder.encodings_)
    if width != state["n_features_in_"]:
        raise BadModelFile(
            f"the encoder makes {width} columns, the model needs {state['n_features_in_']}."
        )
    return make_pipeline(encoder, model)


def _pipeline(steps: Any, reader: StepReader) -> Pipeline:
    """Restore the pipeline; raise unless its last step is the model of the reader."""
    if not isinstance(steps, dict) or set(steps) != {"scikit_learn", "pipeline"}:
        raise BadModelFile("steps must have the keys scikit_learn and pipeline, and no others.")
    warn_of_version(steps["scikit_learn"])
    found = reader.value(steps["pipeline"])
    if not isinstance(found, Pipeline):
        raise BadModelFile("steps does not hold a pipeline.")
    try:
        last = take_apart(found).model
    except (TypeError, ValueError) as error:
        raise BadModelFile(
            "the steps of the pipeline are not pairs of a name and a step."
        ) from error
    if last is not reader.model:
        raise BadModelFile("the pipeline does not end in the model.")
    return found


def _check(state: dict[str, Any], classifier: bool) -> None:
    """Raise unless the attributes of a linear model are valid and consistent."""
    for key in ("coef_", "intercept_", "n_features_in_"):
        if key not in state:
            raise BadModelFile(f"the attribute {key} is missing.")
    coef, d = state["coef_"], state["n_features_in_"]
    if not isinstance(coef, np.ndarray) or coef.dtype.kind != "f" or not np.isfinite(coef).all():
        raise BadModelFile("coef_ must be an array of finite numbers.")
    intercept = state["intercept_"]
    if not isinstance(intercept, np.ndarray | float) or not np.isfinite(intercept).all():
        raise BadModelFile("intercept_ must be finite.")
    k = coef.shape[0] if coef.ndim == 2 else 1
    if type(d) is not int or coef.shape not in ((k, d), (d,)) or np.size(intercept) != k:
        raise BadModelFile(f"coef_ has shape {coef.shape}, which does not fit {d} columns.")
    names = state.get("feature_names_in_")
    if names is not None and (not isinstance(names, np.ndarray) or names.shape != (d,)):
        raise BadModelFile("feature_names_in_ does not have one name for each column.")
    found = state.get("certificate_")
    if not all(
        isinstance(one, _CERTIFICATES) for one in (found if type(found) is tuple else (found,))
    ):
        raise BadModelFile("certificate_ is not a certificate.")
    if classifier:
        _check_classes(state.get("classes_"), k)
    if "_fits" in state:
        if classifier and "_class_weight" not in state:
            raise BadModelFile("the attribute _class_weight is missing.")
        _check_fits(state["_fits"], d, k)


def _check_classes(classes: Any, k: int) -> None:
    if not isinstance(classes, np.ndarray) or classes.ndim != 1:
        raise BadModelFile("classes_ is not a list of classes.")
    if len(classes) != (2 if k == 1 else k) or len(set(classes.tolist())) < len(classes):
        raise BadModelFile(f"{len(classes)} classes do not fit {k} rows of coefficients.")


def _check_fits(fits: Any, d: int, k: int) -> None:
    if not isinstance(fits, list) or not all(isinstance(fit, Fit) for fit in fits):
        raise BadModelFile("_fits is not a list of fits.")
    widths = [getattr(fit.recipe.loss, "k", 1) for fit in fits]
    if sum(widths) != k:
        raise BadModelFile(f"the fits have {sum(widths)} columns, the coefficients {k}.")
    for fit, width in zip(fits, widths, strict=True):
        penalty = fit.recipe.penalty
        if isinstance(penalty, GroupElasticNet) and penalty.factor.shape != (d,):
            raise BadModelFile(f"a fit does not have penalty factors for {d} columns.")
        shapes = {fit.W.shape}
        if isinstance(fit.dual, Linearised):
            shapes |= {fit.dual.base.shape, fit.dual.step.shape}
        if shapes != {(d + 1, width)} or not np.isfinite(fit.W).all():
            raise BadModelFile(f"a fit does not have {d + 1} x {width} finite numbers.")
