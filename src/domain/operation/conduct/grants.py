"""What a conduct does as its submitter after it was opened, and the refusal of a submitter who may not do all of that."""

from collections.abc import Iterable, Mapping
from functools import partial

from baton.domain.operation.conduct.messages import OBJECTIONS
from baton.domain.operation.procedure.procedure import MODES, ConductMode
from baton.domain.shared.gates import GateVerdict, judged
from baton.domain.shared.reads import Reads, grants_missing
from baton.domain.shared.refusals import UnauthorizedError

ENDINGS = ("AbortProcedure", "CompleteProcedure", "HoldProcedure")
PASSES = ("EndProcedureIteration", "StartProcedureIteration")
ISSUED: Mapping[ConductMode, tuple[str, ...]] = {
    ConductMode.FLAT: ENDINGS,
    ConductMode.CONVERGED: (*ENDINGS, *PASSES),
    ConductMode.ADVISED: (*ENDINGS, *PASSES),
}
"""The commands that a conduct issues as its submitter, in each mode."""
RUN_ISSUED = ("AbortRun", "CompleteRun", "HoldRun")
"""The commands that the conduct of a run issues as its submitter, besides those of its phases."""


def needed_grants(command_name: str) -> tuple[str, ...]:
    """The permissions it takes to give a command of a procedure and, where it conducts, to bring that to its end."""
    mode = MODES.get(command_name)
    return (command_name, *(() if mode is None else ISSUED[mode]))


def refuse_missing(objection: str | None, missing: Iterable[str]) -> None:
    """Refuse a submitter who may not act at all, or who does not hold all that the conduct will do on its behalf."""
    if objection is not None:
        raise UnauthorizedError(f"{OBJECTIONS[objection]}; have somebody conduct it who may.", reason=objection)
    if names := sorted(set(missing)):
        raise UnauthorizedError(
            f"The conduct would do {', '.join(names)} on your behalf, which your policies do not permit here; "
            "ask an administrator for that, or have somebody conduct it who may.",
            reason="grants_missing",
            facts={"missing": names},
        )


def refuse_missing_grants(command_names: Iterable[str]) -> Reads[None]:
    """Refuse to open a conduct whose submitter does not hold all of these."""
    refuse_missing(*(yield from grants_missing(*command_names)))


def ask_grants(
    wanted: Mapping[str, Iterable[str]], by_hand: Iterable[str]
) -> Reads[list[tuple[GateVerdict, tuple[str, ...]]]]:
    """Judge the gate `grants_present` for several commands at once; those it says the same to share a verdict.

    What is done by hand asks for its own permission only, and for nobody's standing.
    """
    objection, missing = yield from grants_missing(*{name: None for names in wanted.values() for name in names})
    sharing: dict[tuple[str | None, tuple[str, ...]], tuple[str, ...]] = {}
    for command, names in wanted.items():
        found = None if command in by_hand else objection, tuple(name for name in missing if name in set(names))
        sharing[found] = (*sharing.get(found, ()), command)
    return [(judged("grants_present", (), partial(refuse_missing, *found)), commands) for found, commands in sharing.items()]
