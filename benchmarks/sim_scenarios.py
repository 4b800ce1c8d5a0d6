"""Every leak scenario and its clean twin, again and again: do the runs agree?

    python benchmarks/sim_scenarios.py [torch] [cupy] [cupy13] [extras]
        [--runs 10] [--evidence off,full] [--only TEXT] [--after NAME]

Plays whole pytest sessions over the simulated driver, as the tests do, `--runs` times
each, with the kinds of evidence in turn. What is said must be what the table says,
byte for byte, and the same in every run: so evidence changes no verdict either. A
twin that may be called `clean` or `retention` must be called the same every time. Told
at the end as well: for how many leaks the evidence names the line that allocated them
and who holds them. Ends with status 1 where anything is not so.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import dataclasses
import itertools
import pathlib
import sys
import tempfile


sys.path.insert(0, str(pathlib.Path(__file__).parent.parent))

from tests.simgpu import build
from tests.simgpu import environments
from tests.simgpu.scenarios import explained
from tests.simgpu.scenarios import judging
from tests.simgpu.scenarios import sessions
from tests.simgpu.scenarios.explained import Named
from tests.simgpu.scenarios.sessions import Nursery
from tests.simgpu.scenarios.table import SCENARIOS
from tests.simgpu.scenarios.table import Scenario


@dataclasses.dataclass(slots=True)
class Sum:
    """What came of all runs."""

    files: int = 0
    played: int = 0
    wrong: int = 0
    divided: int = 0
    lines: list[bool] = dataclasses.field(default_factory=list)
    """Of each leak that Python code allocates: whether its line was named."""
    holders: list[bool] = dataclasses.field(default_factory=list)
    """Of each leak that Python holds: whether its holder was named."""

    def explain(self, told: Named, scenario: Scenario) -> None:
        """Count whether a leak was explained; say where it was not."""
        for what, is_named, known in (
            ("line", told.line, self.lines),
            ("holder", told.holder, self.holders),
        ):
            if is_named is not None:
                known.append(is_named)
            if is_named is False:
                print(f"    {scenario}: the {what} is not named\n", *told.evidence)


def nursery(scenario: Scenario, folder: pathlib.Path) -> Nursery:
    """A child with the scenario's framework imported."""
    where = environments.find(scenario.environment)
    libraries = build.build(environments.client(where, scenario.framework))
    return Nursery(where, scenario.framework, libraries, folder)


def repeat(
    child: Nursery, scenario: Scenario, twin: str, kinds: list[str], total: Sum
) -> None:
    """One file, once for each entry of `kinds`, and a line about it."""
    said: collections.Counter[str] = collections.Counter()
    wrong = ""
    for kind in kinds:
        with tempfile.TemporaryDirectory() as folder:
            session = sessions.check(
                child,
                scenario,
                twin,
                pathlib.Path(folder),
                (f"--veo-evidence={kind}",),
            )
            complaint = judging.complaint(session, scenario, twin)
            if complaint:
                total.wrong += 1
                wrong = wrong or f"    {complaint}\n{session.output}"
            if kind == "full" and twin == "leaky" and scenario.outcome == "leak":
                total.explain(explained.named(session, scenario), scenario)
            said[str(judging.judgement(session, scenario, twin))] += 1
    total.files += 1
    total.played += len(kinds)
    total.divided += len(said) > 1
    told = "; ".join(f"{times} x {what}" for what, times in said.items())
    print(f"{scenario!s:34} {twin:5} {told}", flush=True)
    if wrong:
        print(wrong, flush=True)


def play(chosen: list[Scenario], kinds: list[str]) -> Sum:
    """All files of some scenarios, a framework at a time."""
    total = Sum()
    sessions.TIMEOUT_S = 900  # a busy machine is no reason to stop
    chosen = sorted(chosen, key=lambda each: (each.environment, each.framework))
    groups = itertools.groupby(chosen, lambda each: (each.environment, each.framework))
    for _, group in groups:
        scenarios = list(group)
        with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
            child = nursery(scenarios[0], pathlib.Path(folder))
            stack.callback(child.close)
            for scenario, twin in itertools.product(scenarios, ("leaky", "clean")):
                repeat(child, scenario, twin, kinds, total)
    return total


def main() -> int:
    """Parse the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "environments", nargs="*", default=["torch", "cupy", "cupy13", "extras"]
    )
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--evidence", default="off,full")
    parser.add_argument("--only", default="", help="part of a scenario's name")
    parser.add_argument("--after", default="", help="go on behind this scenario")
    given = parser.parse_args()
    kinds = list(
        itertools.islice(itertools.cycle(given.evidence.split(",")), given.runs)
    )
    chosen = [
        one
        for one in SCENARIOS
        if one.environment in given.environments and given.only in str(one)
    ]
    names = [str(one) for one in chosen]
    chosen = chosen[names.index(given.after) + 1 if given.after else 0 :]
    total = play(chosen, kinds)
    print(
        f"{total.files} files, {total.played} sessions: {total.wrong} not as the table "
        f"says, {total.divided} files whose runs do not agree"
    )
    for what, known in (("line", total.lines), ("holder", total.holders)):
        print(f"the {what} is right for {sum(known)} of {len(known)}")
    is_explained = all(total.lines) and all(total.holders)
    return int(bool(total.wrong or total.divided or not is_explained))


if __name__ == "__main__":
    raise SystemExit(main())
