"""``make faults``: run all cases of a library and print how they ended, group by group."""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter

from scoreboard import GROUPS, PEER_GROUPS
from scoreboard.harness import GOOD, KINDS, run
from scoreboard.libraries import LIBRARIES, NotApplicable


def main() -> int:
    parser = argparse.ArgumentParser(prog="scoreboard", description=__doc__)
    parser.add_argument("--library", nargs="*", default=["linsep"], choices=list(LIBRARIES))
    parser.add_argument("--group", nargs="*", default=list(GROUPS), choices=list(GROUPS))
    parser.add_argument("--case", default="", help="cases whose name contains this text")
    parser.add_argument("--quick", action="store_true", help="leave slow cases out")
    options = parser.parse_args()
    bad = 0
    for name in options.library:
        groups = [g for g in options.group if name == "linsep" or g in PEER_GROUPS]
        found = score(name, groups, options.case, options.quick)
        print(table(name, found), flush=True)
        if name == "linsep":
            bad = sum(sum(counts.values()) - counts[GOOD] for counts in found.values())
    return int(bad > 0)


def score(name: str, groups: list[str], part: str, quick: bool) -> dict[str, Counter[str]]:
    """Counts of outcomes by group; whatever is not good is printed."""
    library, found = LIBRARIES[name](), {}
    for group in groups:
        counts: Counter[str] = Counter()
        for case in GROUPS[group].cases():
            if part not in case.name or (quick and case.slow):
                continue
            begun = time.perf_counter()
            kind, text = run(case, library, apart=True)
            if NotApplicable.__name__ in text:
                continue
            counts[kind] += 1
            if kind != GOOD:
                took = time.perf_counter() - begun
                print(
                    f"{name} {group} {case.name}: {kind} ({took:.1f} s)\n    {text[-600:]}",
                    file=sys.stderr,
                )
        found[group] = counts
    return found


def table(name: str, found: dict[str, Counter[str]]) -> str:
    total: Counter[str] = sum(found.values(), Counter())
    lines = [f"| {name} | cases | {' | '.join(KINDS)} |", "|---" * (len(KINDS) + 2) + "|"]
    for group, counts in {**found, "all": total}.items():
        title = (
            group
            if group == "all"
            else f"{group} {GROUPS[group].__doc__.split(': ')[1].split('.')[0].split(',')[0]}"
        )
        shown = " | ".join(str(counts[kind]) for kind in KINDS)
        lines.append(f"| {title} | {sum(counts.values())} | {shown} |")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
