"""``linsep completion``: a shell script that completes verbs, options and their values.

It is generated from the argument parsers, so it always matches the options.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from linsep.cli.commands import VERBS, options_of
from linsep.cli.output import Outcome


def add(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command to the parser."""
    parser.add_argument("shell", choices=tuple(_SHELLS), help="which shell")


def run(options: Any) -> Outcome:
    """Print the script."""
    script = _SHELLS[options.shell]()
    if not options.json:
        print(script, end="")
    return Outcome({"verb": "completion", "shell": options.shell, "script": script})


@dataclass(frozen=True)
class _Option:
    names: tuple[str, ...]
    values: tuple[str, ...]  # choices
    takes_value: bool
    text: str


def _options(verb: str) -> Iterator[_Option]:
    for action in options_of(verb)._actions:
        if action.option_strings:
            names = tuple(action.option_strings)
            values = tuple(map(str, action.choices or ()))
            yield _Option(names, values, action.nargs != 0, action.help or "")


def _positional(verb: str) -> tuple[str, ...]:
    """Return the choices of a positional argument that is not a file."""
    actions = [a for a in options_of(verb)._actions if not a.option_strings and a.choices]
    return tuple(str(choice) for action in actions for choice in action.choices or ())


def _bash() -> str:
    names, values, words = [], [], []
    for verb in VERBS:
        options = list(_options(verb))
        every = " ".join(name for option in options for name in option.names)
        names.append(f'        {verb}) words="{every}" ;;')
        for option in options:
            if option.takes_value:
                keys = "|".join(f'"{verb} {name}"' for name in option.names)
                values.append(f'        {keys}) words="{" ".join(option.values)}" ;;')
        if _positional(verb):
            words.append(f'        {verb}) words="{" ".join(_positional(verb))}" ;;')
    return _BASH.format(
        verbs=" ".join(VERBS),
        cases="|".join(VERBS),
        names="\n".join(names),
        values="\n".join(values),
        words="\n".join(words),
    )


_BASH = """\
# Completion of linsep for bash:  source <(linsep completion bash)
_linsep() {{
    local cur=${{COMP_WORDS[COMP_CWORD]}} prev=${{COMP_WORDS[COMP_CWORD-1]}} verb="" words="" word
    for word in "${{COMP_WORDS[@]:1:COMP_CWORD-1}}"; do
        case $word in {cases}) verb=$word; break ;; esac
    done
    if [[ $cur == "=" ]]; then cur=""; elif [[ $prev == "=" ]]; then prev=${{COMP_WORDS[COMP_CWORD-2]}}; fi
    COMPREPLY=()
    case "$verb $prev" in
{values}
        " "*) words="{verbs} --help --version" ;;
        *) [[ $cur == -* ]] && case $verb in
{names}
        esac || case $verb in
{words}
        esac ;;
    esac
    [[ -n $words ]] && COMPREPLY=($(compgen -W "$words" -- "$cur"))
    return 0
}}
complete -o default -F _linsep linsep
"""


def _zsh() -> str:
    verbs = "\n".join(f"        '{verb}:{_quote(text)}'" for verb, (_, text) in VERBS.items())
    cases = []
    for verb in VERBS:
        lines = [f"        {verb}) _arguments \\"]
        for option in _options(verb):
            value = ""
            if option.takes_value:
                value = f":value:({' '.join(option.values)})" if option.values else ":value:_files"
            text = _quote(option.text).replace("[", "\\[").replace("]", "\\]").replace(":", "\\:")
            many = f"({' '.join(option.names)})" if len(option.names) > 1 else ""
            lines += [f"            '{many}{name}[{text}]{value}' \\" for name in option.names]
        words = _positional(verb)
        lines.append(
            f"            '*:word:({' '.join(words)})' ;;"
            if words
            else "            '*:file:_files' ;;"
        )
        cases.append("\n".join(lines))
    return _ZSH.format(verbs=verbs, cases="\n".join(cases))


_ZSH = """\
#compdef linsep
# Completion of linsep for zsh:  source <(linsep completion zsh)
_linsep() {{
    local -a verbs
    verbs=(
{verbs}
    )
    if (( CURRENT == 2 )); then
        _describe verb verbs
        return
    fi
    local verb=$words[2]
    shift words
    (( CURRENT-- ))
    case $verb in
{cases}
    esac
}}
if [[ $funcstack[1] == _linsep ]]; then _linsep "$@"; else compdef _linsep linsep; fi
"""


def _fish() -> str:
    lines = ["# Completion of linsep for fish:  linsep completion fish | source"]
    lines.append("complete -c linsep -n __fish_use_subcommand -f")
    lines.append("complete -c linsep -n __fish_use_subcommand -l version -d 'print the version'")
    for verb, (_, text) in VERBS.items():
        lines.append(f"complete -c linsep -n __fish_use_subcommand -a {verb} -d '{_quote(text)}'")
        seen = f"-n '__fish_seen_subcommand_from {verb}'"
        if _positional(verb):
            lines.append(f"complete -c linsep {seen} -f -a '{' '.join(_positional(verb))}'")
        for option in _options(verb):
            flags = " ".join(
                f"-l {name[2:]}" if name.startswith("--") else f"-s {name[1:]}"
                for name in option.names
            )
            if option.values:
                flags += f" -x -a '{' '.join(option.values)}'"
            elif option.takes_value:
                flags += " -r"
            lines.append(f"complete -c linsep {seen} {flags} -d '{_quote(option.text)}'")
    return "\n".join(lines) + "\n"


def _quote(text: str) -> str:
    """Put text between single quotes, removing single quotes inside."""
    return text.replace("'", "").replace("\\", "").replace("%%", "%")


_SHELLS: dict[str, Callable[[], str]] = {"bash": _bash, "zsh": _zsh, "fish": _fish}
