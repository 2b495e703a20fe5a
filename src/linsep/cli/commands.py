"""Dispatch of the command line: parse arguments, run the verb, turn errors into exit codes.

Heavy modules are imported only when a verb runs.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import warnings
from contextlib import AbstractContextManager, nullcontext
from difflib import get_close_matches
from importlib import import_module
from pathlib import Path
from typing import Any, NoReturn

#: Verb -> its module (``export`` -> ``exporting``) and what it does.
VERBS = {
    "fit": ("fitting", "fit a model: read the table, choose C, certify, save, write the report"),
    "tune": ("tuning", "print the validation curve of C; fit no final model"),
    "predict": ("predicting", "predict new rows, as CSV"),
    "score": ("scoring", "measure the error of a model on labelled rows, with a confidence bound"),
    "separate": (
        "separating",
        "decide whether a hyperplane separates the classes, with a proof either way",
    ),
    "verify": (
        "verifying",
        "check the certificate of a model against its data, without the solver",
    ),
    "audit": ("auditing", "prove how far a model from another library is from its optimum"),
    "explain": ("explaining", "print the coefficients of a model by name"),
    "report": ("reporting", "write the HTML report of a model"),
    "export": ("exporting", "write the model as SQL, C, Python or ONNX"),
    "convert": ("converting", "write a table as numbers: npz, LIBSVM, CSV, Parquet or Arrow"),
    "demo": ("demonstration", "fit a bundled data set and write everything into a folder"),
    "completion": ("completion", "print the completion script for bash, zsh or fish"),
}
DONE, USAGE, NOT_CERTIFIED, BAD_DATA, BAD_MODEL, LIMIT, INTERRUPTED = 0, 2, 3, 4, 5, 6, 130


class _Parser(argparse.ArgumentParser):
    """A parser whose errors are one line: the usage of a verb with forty options would hide them."""

    def error(self, message: str) -> NoReturn:
        """Say what is wrong and where the options are listed."""
        end = "" if message.endswith((".", "?")) else "."
        listed = "options" if " " in self.prog else "verbs"
        self.exit(USAGE, f"{self.prog}: {message}{end} `{self.prog} --help` lists all {listed}.\n")

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is None or value in action.choices:
            return
        known = [str(one) for one in action.choices]
        near = get_close_matches(str(value), known, 1)
        hint = f"did you mean {near[0]}?" if near else f"choose one of {', '.join(known)}"
        raise argparse.ArgumentError(action, f"there is no {value!r:.60}; {hint}")


def parser(verb: str | None) -> argparse.ArgumentParser:
    """Build the parser; only the named verb gets its options, so that ``--help`` is fast."""
    top = _Parser(
        prog="linsep",
        description="Fit, tune, check and export linear models with proven optimality.",
        epilog="Run `linsep VERB --help` for the options of a verb.",
    )
    top.add_argument("--version", action="store_true", help="print the version and exit")
    verbs = top.add_subparsers(dest="verb", metavar="VERB")
    for name, (module, text) in VERBS.items():
        one = verbs.add_parser(name, help=text, description=f"{text[0].upper()}{text[1:]}.")
        if name == verb:
            import_module(f"linsep.cli.{module}").add(one)
            _common(one)
    return top


def options_of(verb: str) -> argparse.ArgumentParser:
    """Return the parser of one verb, for inspection of its options."""
    one = _Parser(prog=f"linsep {verb}")
    import_module(f"linsep.cli.{VERBS[verb][0]}").add(one)
    _common(one)
    return one


def _common(one: argparse.ArgumentParser) -> None:
    group = one.add_argument_group("output and defaults")
    group.add_argument(
        "--json", action="store_true", help="print one JSON object on standard output"
    )
    group.add_argument("--quiet", "-q", action="store_true", help="print errors only")
    group.add_argument(
        "--config", metavar="FILE", help="read defaults from table [VERB] of a TOML file"
    )


def run(argv: list[str]) -> int:
    """Parse the arguments, run the verb, report the outcome, and return the exit code."""
    verb = next((word for word in argv if word in VERBS), None)
    top = parser(verb)
    try:
        options, rest = top.parse_known_args(_with_config(top, argv, verb))
        if rest:
            _refuse_unknown(top if verb is None else options_of(verb), rest[0])
    except SystemExit as stop:
        return int(stop.code or 0)
    if options.version:
        from importlib.metadata import version  # noqa: PLC0415

        print(version("linsep"))
        return DONE
    if options.verb is None:
        top.print_help(sys.stderr)
        return USAGE
    return _guard(options)


#: Words of other programs -> options of this one.
_SYNONYMS = {
    "loss": "model",
    "label": "target",
    "folds": "cv",
    "sep": "delimiter",
    "separator": "delimiter",
}


def _refuse_unknown(one: argparse.ArgumentParser, word: str) -> NoReturn:
    """Exit with an error that suggests the option closest to an unknown word."""
    known = {option.lstrip("-"): option for option in one._option_string_actions}
    name = word.partition("=")[0].lstrip("-")  # dashes would make all options look alike
    near = known.get(_SYNONYMS.get(name, "")) or next(
        (known[found] for found in get_close_matches(name, list(known), 1)), None
    )
    one.error(f"unknown argument {word!r:.60}" + (f"; did you mean {near}?" if near else ""))


def _with_config(top: argparse.ArgumentParser, argv: list[str], verb: str | None) -> list[str]:
    """Insert the options of the TOML file before the arguments, so that the command line takes precedence."""
    if verb is None or "--config" not in argv[:-1]:
        return argv
    path = argv[argv.index("--config") + 1]
    try:
        if sys.version_info >= (3, 11):
            import tomllib  # noqa: PLC0415
        else:
            import tomli as tomllib  # noqa: PLC0415
    except ImportError:
        top.error("--config needs Python 3.11 or later, or the package tomli: pip install tomli")
    try:
        settings = tomllib.loads(Path(path).read_text("utf-8")).get(verb, {})
    except (OSError, ValueError, RecursionError) as error:
        top.error(f"--config {path}: {error}")
    if not isinstance(settings, dict):
        top.error(f"--config {path}: {verb} is not a table; write [{verb}] above its options")
    known = set(options_of(verb)._option_string_actions) - {"--help", "--config"}
    words: list[str] = []
    for name, value in settings.items():
        option = f"--{name.replace('_', '-')}"
        if option not in known:
            near = get_close_matches(option, known, n=1)
            hint = f"; did you mean {near[0][2:]}?" if near else ""
            top.error(f"--config {path}: [{verb}] has no option {name!r:.60}{hint}")
        for one in value if isinstance(value, list) else [value]:
            if not isinstance(one, bool | int | float | str):
                top.error(
                    f"--config {path}: {name} is neither a number, a text, true, false nor a list of these"
                )
            if one is True:
                words.append(option)
            elif one is not False:
                words.append(f"{option}={one}")
    at = argv.index(verb) + 1
    return [*argv[:at], *words, *argv[at:]]


def _guard(options: Any) -> int:
    """Run the verb; known errors become one line and an exit code, never a traceback."""
    from linsep import errors  # noqa: PLC0415
    from linsep.cli.output import fail  # noqa: PLC0415

    module = import_module(f"linsep.cli.{VERBS[options.verb][0]}")
    try:
        with _progress_bar(options), warnings.catch_warnings():
            # columns were matched by name when the file was read
            warnings.filterwarnings("ignore", message="X does not have valid feature names")
            outcome = module.run(options)
        if options.json:
            print(json.dumps(outcome.facts, default=_to_json, allow_nan=False))
        sys.stdout.flush()
    except BrokenPipeError:  # the reader of standard output has closed the pipe
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return DONE
    except (errors.LinsepError, OSError, ImportError, MemoryError, KeyboardInterrupt) as error:
        return fail(options, error, _code_of(error))
    return int(outcome.code)


def _code_of(error: BaseException) -> int:
    """Return the exit code of an error: that of the first matching type."""
    from linsep import errors  # noqa: PLC0415

    codes = {
        errors.BadModelFile: BAD_MODEL,
        errors.CertificateError: NOT_CERTIFIED,
        ImportError: USAGE,
        MemoryError: LIMIT,
        KeyboardInterrupt: INTERRUPTED,
    }
    return next((code for kind, code in codes.items() if isinstance(error, kind)), BAD_DATA)


def _progress_bar(options: Any) -> AbstractContextManager[None]:
    """Return a progress bar for operations longer than a second, if standard error is a terminal."""
    from linsep.monitoring import progress  # noqa: PLC0415

    return progress() if sys.stderr.isatty() and not options.quiet else nullcontext()


def _to_json(value: Any) -> Any:
    """Convert numpy numbers and arrays to JSON types."""
    if hasattr(value, "tolist"):
        return value.tolist()
    return str(value)
