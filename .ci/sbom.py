"""Write the bill of materials of a wheel beside it: CycloneDX 1.5 in JSON, the same bytes for the same wheel.

    python .ci/sbom.py dist/linsep-*.whl

Listed are the packages that the wheel requires, those that its extras add (scope "optional"), what is linked into the
compiled module, and every file with its hash.
"""

from __future__ import annotations

import email
import hashlib
import importlib.metadata
import json
import re
import sys
import uuid
import zipfile
from pathlib import Path
from typing import Any

# Linked statically, at the version that is installed where the wheel is built.
LINKED = {"nanobind": "BSD-3-Clause"}
# Part of the sources of nanobind.
INSIDE = {"robin-map": ("pkg:github/Tessil/robin-map", "MIT")}
REQUIREMENT = re.compile(
    r"(?P<name>[A-Za-z0-9._-]+)(?:\[[^]]*\])?\s*(?P<versions>[^;]*)(?P<extra>;.*extra\s*==.*)?"
)
DEVELOPERS = ("extra == 'dev'", "extra == 'docs'")


def sha256(content: bytes) -> list[dict[str, str]]:
    """The hash of a file as CycloneDX writes it."""
    return [{"alg": "SHA-256", "content": hashlib.sha256(content).hexdigest()}]


def required(metadata: email.message.Message) -> list[dict[str, Any]]:
    """One component for each package that a user's installation may bring along."""
    found: dict[str, dict[str, Any]] = {}
    for line in metadata.get_all("Requires-Dist", []):
        match = REQUIREMENT.match(line)
        if match is None:
            raise SystemExit(f"cannot read the requirement {line!r}")
        if match["extra"] and any(name in line.replace('"', "'") for name in DEVELOPERS):
            continue
        name = match["name"].lower()
        scope = "optional" if match["extra"] else "required"
        if name in found and scope == "optional":
            continue
        found[name] = {
            "type": "library",
            "bom-ref": f"pkg:pypi/{name}",
            "name": name,
            "purl": f"pkg:pypi/{name}",
            "scope": scope,
            "properties": [{"name": "versions", "value": match["versions"].strip(" ()")}],
        }
    return [found[name] for name in sorted(found)]


def linked() -> list[dict[str, Any]]:
    """One component for each package whose code is in the compiled module."""
    components = []
    for name, licence in LINKED.items():
        version = importlib.metadata.version(name)
        purl = f"pkg:pypi/{name}@{version}"
        components.append(
            {
                "type": "library",
                "bom-ref": purl,
                "name": name,
                "version": version,
                "purl": purl,
                "scope": "required",
                "licenses": [{"license": {"id": licence}}],
                "properties": [{"name": "linkage", "value": "static"}],
            }
        )
    for name, (purl, licence) in INSIDE.items():
        components.append(
            {
                "type": "library",
                "bom-ref": purl,
                "name": name,
                "purl": purl,
                "scope": "required",
                "licenses": [{"license": {"id": licence}}],
                "properties": [{"name": "linkage", "value": "static"}],
            }
        )
    return components


def bill(wheel: Path) -> dict[str, Any]:
    """The bill of materials as CycloneDX states it."""
    with zipfile.ZipFile(wheel) as archive:
        contents = {name: archive.read(name) for name in archive.namelist()}
    (described,) = (name for name in contents if name.endswith(".dist-info/METADATA"))
    metadata = email.message_from_bytes(contents[described])
    name, version, packed = metadata["Name"], metadata["Version"], wheel.read_bytes()
    itself = f"pkg:pypi/{name}@{version}"
    files = [
        {"type": "file", "bom-ref": f"file:{path}", "name": path, "hashes": sha256(contents[path])}
        for path in sorted(contents)
        if not path.endswith("/")
    ]
    packages = linked() + required(metadata)
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "serialNumber": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, itself + hashlib.sha256(packed).hexdigest())}",
        "version": 1,
        "metadata": {
            "component": {
                "type": "library",
                "bom-ref": itself,
                "name": name,
                "version": version,
                "purl": itself,
                "description": metadata["Summary"],
                "licenses": [{"license": {"id": metadata["License-Expression"]}}],
                "hashes": sha256(packed),
            }
        },
        "components": packages + files,
        "dependencies": [{"ref": itself, "dependsOn": [part["bom-ref"] for part in packages]}],
    }


if __name__ == "__main__":
    wheel = Path(sys.argv[1])
    to = wheel.with_suffix(".cdx.json")
    to.write_text(json.dumps(bill(wheel), indent=1) + "\n", encoding="utf-8")
    print(f"{to}: {wheel.name} and what it needs")
