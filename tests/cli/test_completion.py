"""Shell completion: the script of bash is run by bash, those of the other shells name every option."""

from __future__ import annotations

import contextlib
import io
import subprocess

import pytest

from linsep.cli import main
from linsep.cli.commands import VERBS, options_of


@pytest.fixture(scope="module")
def script(tmp_path_factory):
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        assert main(["completion", "bash"]) == 0
    path = tmp_path_factory.mktemp("shell") / "linsep.bash"
    path.write_text(out.getvalue())
    return path


# What stands on the line, the last word not finished -> what bash offers.
COMPLETED = {
    "nothing yet": ([""], {*VERBS, "--help", "--version"}),
    "a verb begun": (["se"], {"separate"}),
    "two verbs": (["ex"], {"explain", "export"}),
    "options of a verb": (["fit", "--ti"], {"--time-limit"}),
    "options of another verb": (["predict", "--pro"], {"--proba"}),
    "no options of other verbs": (["predict", "--Cs"], set()),
    "values": (
        ["fit", "t.csv", "--model", ""],
        {"logistic", "svm", "squared-hinge", "least-squares", "least-absolute", "huber"},
    ),
    "values begun": (["fit", "--model", "s"], {"svm", "squared-hinge"}),
    "values behind an equals sign": (
        ["fit", "--model", "=", "l"],
        {"logistic", "least-squares", "least-absolute"},
    ),
    "a verb behind options": (["--version", "tu"], {"tune"}),
    "shells": (["completion", ""], {"bash", "zsh", "fish"}),
    "a file name is left to the shell": (["fit", "da"], set()),
    "a value without a list": (["fit", "--target", "x"], set()),
    "export formats": (["export", "m.linsep", "--to", ""], {"sql", "c", "python", "onnx"}),
}


@pytest.mark.parametrize("case", COMPLETED)
def test_bash_completes(script, case):
    words, expected = COMPLETED[case]
    code = (
        'source "$1"; shift; COMP_WORDS=(linsep "$@"); COMP_CWORD=$#; _linsep; '
        'printf "%s\\n" "${COMPREPLY[@]}"'
    )
    run = subprocess.run(
        ["bash", "-uc", code, "bash", str(script), *words],
        capture_output=True,
        text=True,
        check=True,
    )
    assert run.stderr == ""
    assert set(run.stdout.split()) == expected


def test_bash_knows_the_function(script):
    code = 'source "$1"; complete -p linsep'
    run = subprocess.run(
        ["bash", "-c", code, "bash", str(script)], capture_output=True, text=True, check=True
    )
    assert run.stdout.strip() == "complete -o default -F _linsep linsep"


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_every_option_is_there(shell, capsys):
    assert main(["completion", shell]) == 0
    text = capsys.readouterr().out
    for verb in VERBS:
        assert verb in text
        for action in options_of(verb)._actions:
            for name in action.option_strings:
                assert (
                    (f"-l {name[2:]} " in text)
                    if shell == "fish" and name[:2] == "--"
                    else (f"-s {name[1:]} " in text if shell == "fish" else name in text)
                )


def test_an_unknown_shell_is_a_usage_error(capsys):
    assert main(["completion", "cmd"]) == 2
    assert "there is no 'cmd'; choose one of bash, zsh, fish" in capsys.readouterr().err
