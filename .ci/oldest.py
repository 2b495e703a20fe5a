"""Print the lowest versions that pyproject.toml allows, one pip constraint a line.

Counted are the packages that linsep itself imports: its dependencies, and its extras but those of developers.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

DEVELOPERS = {"dev", "docs"}
BOUND = re.compile(r"([A-Za-z0-9_-]+)(?:\[[^]]*\])?>=([0-9.]+)(?:; .*)?$")


def lowest(text: str) -> dict[str, str]:
    """Package -> lowest version, of the text of a pyproject.toml."""
    if sys.version_info >= (3, 11):
        import tomllib  # noqa: PLC0415
    else:
        import tomli as tomllib  # noqa: PLC0415
    project = tomllib.loads(text)["project"]
    wanted = list(project["dependencies"])
    for extra, packages in project["optional-dependencies"].items():
        wanted += [] if extra in DEVELOPERS else packages
    found = {}
    for requirement in wanted:
        match = BOUND.match(requirement)
        if match is None:
            raise SystemExit(f"{requirement!r}: expected the form name>=version")
        found[match[1]] = match[2]
    return found


if __name__ == "__main__":
    for name, version in lowest(Path("pyproject.toml").read_text(encoding="utf-8")).items():
        print(f"{name}=={version}")
