"""Hunt for false certificates: hostile problems, an independent judge, a watchdog.

    python benchmarks/proof_hunt.py --problems 500 --seed 0 --out hunt.jsonl
    python benchmarks/proof_hunt.py --replay 1234

Every problem is fitted, verified (in floats and exactly), judged by tests/support/judge.py, and a sample of the models
is tampered with. One line of JSON per problem; a table at the end. Fits that take longer than 20 seconds are counted
and their process is ended.

The percentage of certified claims is that of fits that are meant to end certified. These are not, and are counted
apart: problems that are refused, SGDClassifier, whose five epochs are a limit, and objectives that are no float64
number of full precision (below 2^-1000 or above 1.8e308), about which no relative gap can be stated. Their claims are
judged and verified like all others.
"""

from __future__ import annotations

import argparse
import collections
import json
import math
import multiprocessing
import os
import sys
import time
import traceback
import warnings
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests" / "support"))
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

#: Seconds of processor time that each stage of a problem may take, and how many times as long on the clock.
LIMITS = {"start": 60.0, "fit": 20.0, "verify": 60.0, "exact": 60.0, "judge": 90.0, "tamper": 180.0}
ON_THE_CLOCK = 10.0
SLOW = 5.0
#: Objectives below have lost digits to underflow.
SMALLEST = 2.0**-1000
#: One model in so many is tampered with.
SAMPLE = 8


def examine(seed: int, options: dict[str, Any], tell: Any = lambda stage: None) -> dict[str, Any]:
    """Everything that is to be known about one problem."""
    import hostile

    case = hostile.draw(seed, tuple(options["designs"]), tuple(options["modes"]))
    record: dict[str, Any] = case.describe()
    if any(str(record[key]) != value for key, value in options["only"]):
        return {"seed": seed, "outcome": "skipped"}
    tell(("case", record))
    tell(("stage", "fit"))
    began = time.process_time()
    try:
        model, answers = hostile.answers(case)
    except Exception as error:
        record.update(outcome=type(error).__name__, message=str(error)[:300])
        if not _is_refusal(error):
            record["crash"] = traceback.format_exc()[-2000:]
        return record
    finally:
        record["seconds"] = round(time.process_time() - began, 4)
    record["outcome"] = "fitted"
    claims = [answer.claim for answer in answers] or [model.certificate_]
    record["claims"] = len(claims)
    record["certified"] = sum(bool(claim.certified) for claim in claims)
    left = [claim for claim in claims if not claim.certified]
    record["not_meant"] = len(left) if case.mode == "sgd" else sum(map(_out_of_range, left))
    tell(("stage", "judge"))
    record["findings"] = _judged(case, model, answers)
    if model is not None and model.certificate_.certified:
        for stage in ("verify", "exact"):
            tell(("stage", stage))
            record[stage] = _verified(model, case, exact=stage == "exact")
        if seed % SAMPLE == 0 and case.mode not in ("zero_one", "hard_margin"):
            tell(("stage", "tamper"))
            record["tampered"], record["accepted"] = _tampered(model, case)
    return record


def _out_of_range(claim: Any) -> bool:
    """Whether the objective is no float64 number of full precision."""
    return not SMALLEST <= getattr(claim, "primal", 1.0) < math.inf


def _is_refusal(error: Exception) -> bool:
    from linsep.errors import LinsepError

    return isinstance(error, LinsepError)


def _judged(case: Any, model: Any, answers: Any) -> list[list[str]]:
    from hostile import dense
    from judge import judge, judge_errors

    found = []
    if case.mode == "zero_one":
        listed = judge_errors(dense(case.X), case.y, case.weight, model.certificate_)
        return [["fit", *finding] for finding in listed]
    for answer in answers:
        listed, _ = judge(answer.task, answer.W, answer.claim, seconds=3.0)
        found += [[answer.title, *finding] for finding in listed]
    return found


def _verified(model: Any, case: Any, exact: bool) -> str:
    from linsep import verify
    from linsep.errors import CertificateError, Refused

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            verify(model, case.X, case.y, case.weight, exact=exact)
    except CertificateError as error:
        return f"rejected: {error}"[:600]
    except Refused as error:
        return f"refused: {error}"[:200]
    except Exception as error:
        return f"crashed: {type(error).__name__}: {error}"[:300]
    return "passed"


def _tampered(model: Any, case: Any) -> tuple[int, list[str]]:
    """Alterations tried, and the names of those that are false and pass verify."""
    from tampering import alterations

    from linsep import verify

    tried, accepted = 0, []
    for altered in alterations(model, case.X, case.y, case.weight):
        tried += 1
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                verify(altered.model, altered.X, altered.y, altered.weight)
        except Exception:
            continue
        if altered.certain or _is_false(case, altered):
            accepted.append(altered.name)
    return tried, accepted


def _is_false(case: Any, altered: Any) -> bool:
    """Whether the judge can refute the altered claim on the altered data."""
    import copy

    from hostile import of_model
    from judge import judge

    twin = copy.copy(case)
    twin.X, twin.y, twin.weight = altered.X, altered.y, altered.weight
    C = vars(altered.model).get("C_", altered.model.get_params().get("C"))
    if len(getattr(altered.model, "classes_", ())) == 2:
        twin.y = _as_signs(altered.model.classes_, altered.y)
    return any(
        finding.kind in ("objective", "lower bound", "gap", "certificate", "coef_error")
        for answer in of_model(twin, altered.model, C)
        for finding in judge(answer.task, answer.W, answer.claim, effort=8)[0]
    )


def _as_signs(classes: Any, y: Any) -> Any:
    import numpy as np

    return np.where(np.asarray(y) == classes[1], 1, -1)


def _work(pipe: Any, options: dict[str, Any]) -> None:
    """A worker: examine the seeds that are sent until there are no more."""
    while True:
        seed = pipe.recv()
        if seed is None:
            return
        try:
            record = examine(seed, options, pipe.send)
        except Exception:
            record = {"seed": seed, "outcome": "error in the hunt", "crash": traceback.format_exc()}
        pipe.send(("done", record))


def _processor_time(pid: int) -> float:
    """Seconds that a process has computed, on Linux; elsewhere the clock."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return time.monotonic()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Worker:
    """A process with a pipe and a watchdog."""

    def __init__(self, options: dict[str, Any]) -> None:
        self.options = options
        self.process: Any = None
        self.seed: int | None = None

    def give(self, seed: int) -> None:
        if self.process is None:
            context = multiprocessing.get_context("spawn")
            self.pipe, theirs = context.Pipe()
            self.process = context.Process(target=_work, args=(theirs, self.options), daemon=True)
            self.process.start()
        self.pipe.send(seed)
        self.seed, self.record = seed, {"seed": seed}
        self._enter("start")

    def _enter(self, stage: str) -> None:
        self.stage, self.since = stage, time.monotonic()
        self.spent = _processor_time(self.process.pid)

    def _late(self) -> bool:
        limit = LIMITS[self.stage]
        clock = time.monotonic() - self.since
        if clock <= limit:
            return False
        spent = _processor_time(self.process.pid) - self.spent
        return spent > limit or clock > ON_THE_CLOCK * limit

    def poll(self) -> dict[str, Any] | None:
        """The record of the problem, if it is done or has taken too long."""
        if self.pipe.poll(0.02):
            try:
                kind, what = self.pipe.recv()
            except EOFError:
                return self._end({**self.record, "outcome": "process died", "stage": self.stage})
            if kind == "done":
                self.seed = None
                return dict(what)
            if kind == "case":
                self.record = what
            else:
                self._enter(what)
        elif self._late():
            return self._end({**self.record, "outcome": "timeout", "stage": self.stage})
        return None

    def _end(self, record: dict[str, Any]) -> dict[str, Any]:
        self.process.kill()
        self.process.join()
        self.process, self.seed = None, None
        return record

    def dismiss(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.join()


def hunt(seeds: range, options: dict[str, Any], jobs: int, seconds: float, out: Any) -> list[Any]:
    """Examine all seeds, or as many as time allows; write each record as it comes."""
    workers = [Worker(options) for _ in range(jobs)]
    waiting = iter(seeds)
    records = []
    end = time.monotonic() + seconds
    exhausted = False
    while not exhausted or any(worker.seed is not None for worker in workers):
        for worker in workers:
            if worker.seed is None:
                seed = None if time.monotonic() > end else next(waiting, None)
                exhausted = exhausted or seed is None
                if seed is not None:
                    worker.give(seed)
                continue
            record = worker.poll()
            if record is not None and record["outcome"] != "skipped":
                records.append(record)
                out.write(json.dumps(record, default=str) + "\n")
                out.flush()
    for worker in workers:
        worker.dismiss()
    return records


# --- the table ------------------------------------------------------------------------------------------------

_FALSE = ("certificate", "lower bound", "gap", "objective", "coef_error", "fields", "share")


def failures(record: dict[str, Any]) -> list[str]:
    """Categories of what is wrong in a record."""
    kinds = [finding[1] for finding in record.get("findings", ())]
    if record.get("certified") == 0:  # what an honest "not certified" may not do either
        kinds = [f"{kind} (uncertified)" for kind in kinds]
    for stage in ("verify", "exact"):
        outcome = record.get(stage, "passed")
        if not outcome.startswith("passed"):
            kinds.append(f"{stage} {outcome.split(':')[0]}")
    kinds += [f"accepted: {name}" for name in record.get("accepted", ())]
    if record.get("outcome") == "timeout":
        kinds.append(f"timeout in {record['stage']}")
    if "crash" in record or record.get("outcome") == "process died":
        kinds.append("crash")
    if record.get("seconds", 0.0) > SLOW:
        kinds.append("slow")
    return list(dict.fromkeys(kinds))


def summarise(records: list[dict[str, Any]]) -> str:
    """The table that is printed at the end."""
    lines = []
    fitted = [r for r in records if r.get("outcome") == "fitted"]
    claims, certified = _count(fitted)
    beyond = sum(r["claims"] for r in fitted) - claims
    lines.append(
        f"{len(records)} problems, {len(fitted)} fitted, {claims} claims of fits that are meant to end certified, "
        f"{certified} certified ({certified / max(claims, 1):.1%}); {beyond} other claims that are not certified "
        f"(SGD, objectives out of range); alterations tried {sum(r.get('tampered', 0) for r in records)}"
    )
    ends = collections.Counter(r.get("outcome", "?") for r in records)
    lines.append("outcomes: " + ", ".join(f"{k} {v}" for k, v in ends.most_common()))
    plain = [r for r in fitted if r.get("plain")]
    lines.append("certified on plain data: {1} of {0}".format(*_count(plain)))
    seeds = collections.defaultdict(list)
    for record in records:
        for kind in failures(record):
            seeds[kind].append(record["seed"])
    lines.append(f"\n{'failure':40s} {'count':>6s}  seeds")
    for kind, where in sorted(seeds.items(), key=lambda item: -len(item[1])):
        lines.append(f"{kind:40s} {len(where):6d}  {', '.join(map(str, where[:8]))}")
    for key in ("mode", "loss", "design", "weights", "storage", "entry"):
        lines.append(
            f"\n{key:18s} {'claims':>7s} {'certified':>9s} {'false':>6s} {'verify':>7s} {'exact':>6s}"
        )
        for value in sorted({str(r.get(key)) for r in fitted}):
            some = [r for r in fitted if str(r.get(key)) == value]
            claims, certified = _count(some)
            false = sum(any(f[1] in _FALSE for f in r.get("findings", ())) for r in some)
            refused = [
                sum(r.get(stage, "").startswith(("rejected", "crashed")) for r in some)
                for stage in ("verify", "exact")
            ]
            share = f"{certified / max(claims, 1):.0%}"
            lines.append(
                f"{value:18s} {claims:7d} {share:>9s} {false:6d} {refused[0]:7d} {refused[1]:6d}"
            )
    return "\n".join(lines)


def _count(records: list[dict[str, Any]]) -> tuple[int, int]:
    """Claims of fits that are meant to end certified, and how many do."""
    meant = sum(r["claims"] - r.get("not_meant", 0) for r in records)
    return meant, sum(r["certified"] for r in records)


def replay(seed: int, options: dict[str, Any]) -> None:
    """Examine one problem here and print all that is known."""
    record = examine(seed, options)
    for key, value in record.items():
        if key == "findings":
            for finding in value:
                print("  ", *finding, sep=" | ")
        else:
            print(f"{key}: {value}")
    import hostile

    case = hostile.draw(seed, tuple(options["designs"]), tuple(options["modes"]))
    if record["outcome"] == "fitted":
        model, answers = hostile.answers(case)
        for answer in answers:
            print(answer.title, repr(answer.claim))
        if case.mode == "zero_one":
            print(model.certificate_)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--problems", type=int, default=500)
    parser.add_argument("--seed", type=int, default=0, help="the first seed")
    parser.add_argument("--seconds", type=float, default=3600.0, help="no new problem after this")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--out", default="proof_hunt.jsonl")
    parser.add_argument("--kinds", default="", help="designs, comma separated; all by default")
    parser.add_argument("--modes", default="", help="two, regression, ovr, ...; all by default")
    parser.add_argument("--only", default="", help="settings to keep, such as C=inf,loss=hinge")
    parser.add_argument("--replay", type=int, help="examine this seed alone and print everything")
    parser.add_argument("--summarise", action="store_true", help="print the table of --out again")
    given = parser.parse_args()
    options = {
        "designs": [k for k in given.kinds.split(",") if k],
        "modes": [k for k in given.modes.split(",") if k],
        "only": [pair.split("=") for pair in given.only.split(",") if pair],
    }
    if given.replay is not None:
        replay(given.replay, options)
        return
    if given.summarise:
        lines = Path(given.out).read_text().splitlines()
        print(summarise([json.loads(line) for line in lines]))
        return
    seeds = range(given.seed, given.seed + given.problems)
    with open(given.out, "a") as out:
        records = hunt(seeds, options, given.jobs, given.seconds, out)
    print(summarise(records))


if __name__ == "__main__":
    main()
