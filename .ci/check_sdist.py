"""Compare a source distribution with the files that a build needs, and with the files that it must not hold."""

import sys
import tarfile
from pathlib import Path

root = Path(__file__).resolve().parents[1]
needed = {
    str(path.relative_to(root))
    for folder in ("src", "kernels")
    for path in (root / folder).rglob("*")
    if path.is_file() and path.suffix not in {".pyc", ".so"}
} | {"pyproject.toml", "CMakeLists.txt", "LICENSE", "README.md"}
with tarfile.open(sys.argv[-1]) as archive:
    held = {name.split("/", 1)[1] for name in archive.getnames() if "/" in name}
missing = sorted(needed - held)
foreign = sorted(
    n for n in held if n.split("/")[0] in {".ci", "build", "tests", ".venv"} or n.endswith(".so")
)
if missing or foreign:
    sys.exit(f"missing: {missing}\nmust not be there: {foreign}")
print(f"{sys.argv[-1]}: {len(held)} files, nothing missing")
