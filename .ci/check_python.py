"""Stop with the remedy unless this Python can compile linsep: its version, its headers, and pip for environments."""

import importlib.util
import sys
import sysconfig
from pathlib import Path

here = sys.executable
version = "{}.{}".format(*sys.version_info[:2])
if sys.version_info < (3, 10):  # noqa: UP036
    sys.exit(
        f"{here} is Python {version}, and linsep needs 3.10 or later: make setup PYTHON=python3.11"
    )
if not Path(sysconfig.get_path("include"), "Python.h").exists():
    sys.exit(f"{here} has no headers. On Debian: sudo apt-get install python{version}-dev")
if importlib.util.find_spec("ensurepip") is None:
    sys.exit(
        f"{here} cannot create environments. On Debian: sudo apt-get install python{version}-venv"
    )
