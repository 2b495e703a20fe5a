"""Keep pandas out of the command line: scikit-learn would import it if installed, at half a second and 70 MB."""

from __future__ import annotations

import sys


class _Hider:
    """A meta path finder that makes pandas appear not to be installed."""

    @staticmethod
    def find_spec(name: str, path: object = None, target: object = None) -> None:
        if name == "pandas":
            raise ModuleNotFoundError("linsep does without pandas", name=name)


def hide_pandas() -> None:
    """Let later imports of pandas fail."""
    sys.meta_path.insert(0, _Hider())


def show_pandas() -> None:
    """Undo ``hide_pandas``, for models whose steps select columns by name."""
    sys.meta_path[:] = [finder for finder in sys.meta_path if not isinstance(finder, _Hider)]
