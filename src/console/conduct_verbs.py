"""The verbs of a conduct: those that its moment calls for come first, filled in with where it is; the others follow."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from baton.console.display import words_of
from baton.console.page_queries import PageQueries, Shown
from baton.console.verbs import VerbButton, form_href, verbs_of
from baton.domain.conduct.progress import WaitingFor
from baton.domain.conduct.step_list import StepState
from baton.domain.procedure.procedure import DEFINED, ENDED, HELD, RUNNING, ConductMode, Procedure

OPENS = {
    "conduct_procedure": (DEFINED,),
    "conduct_or_hold_procedure": (DEFINED,),
    "conduct_from_procedure": (HELD,),
    "conduct_until_converged": (DEFINED, HELD),
    "conduct_until_advised": (DEFINED,),
    "conduct_until_advised_from": (HELD,),
}  # The commands that conduct a procedure, and the states in which they do.
RESUMES = {
    ConductMode.FLAT: "conduct_from_procedure",
    ConductMode.CONVERGED: "conduct_until_converged",
    ConductMode.ADVISED: "conduct_until_advised_from",
}  # The command that takes a held procedure up, by how it is conducted.
TAKE_UP = "Take it up"
LOOKED_AT = "I have looked at it"
HOLD, ABORT = "hold_procedure", "abort_procedure"
SKIP, RESOLVE = "skip_procedure_wait", "resolve_procedure_step"


@dataclass(frozen=True)
class ConductVerbs:
    """The buttons of a conduct."""

    first: list[VerbButton]
    others: list[VerbButton]


def waits_in_check(current: Shown | None) -> bool:
    """Return whether a conduct stands in a check that waits."""
    return current is not None and current["state"] == StepState.RUNNING and bool(current["step"].get("timeout"))


def unresolved_step(view: Shown) -> Shown | None:
    """Return the step of which nobody has said yet whether it was done, or None."""
    unknown: Shown | None = view["unknown_step"]
    if unknown is None:
        return None
    resolved = ({name: value for name, value in one.items() if name != "outcome"} for one in view["resolved_steps"])
    return None if dict(unknown) in list(resolved) else unknown


def conduct_verbs(view: Shown, conduct: Shown, current: Shown | None, queries: PageQueries) -> ConductVerbs:
    """Return the buttons of a procedure, given what its latest conduct is at."""
    buttons = {one.name: with_state(one, view, conduct) for one in verbs_of(Procedure.aggregate, view, queries)}
    status, live = HELD if view["lost"] else view["status"], view["live_conduct_id"] is not None
    first: list[VerbButton] = []
    if live:
        first = [buttons[HOLD]]
        if current is not None and waits_in_check(current):
            at = {"conduct_id": view["live_conduct_id"], "step_index": current["step_index"]}
            buttons[SKIP] = fill_in(buttons[SKIP], view, **at, iteration_index=conduct["iteration_index"])
            first.append(buttons[SKIP])
        first.append(buttons[ABORT])
    elif status == HELD:
        if (unknown := unresolved_step(view)) is not None:
            for outcome in ("done", "not_done"):
                settled = fill_in(buttons[RESOLVE], view, **unknown, outcome=outcome)
                first.append(replace(settled, label=f"It was {words_of(outcome).lower()}"))
        elif view["conduct_mode"] is not None:
            taken_up = buttons[RESUMES[ConductMode(view["conduct_mode"])]]
            first.append(replace(fill_in(taken_up, view, **kept_design(conduct)), label=TAKE_UP))
        else:
            first.append(buttons["resume_procedure"])
        first.append(buttons[ABORT])
    elif status == DEFINED:
        first = [buttons[name] for name in ("conduct_procedure", "conduct_or_hold_procedure", "start_procedure")]
    elif status == RUNNING:
        first = [buttons[name] for name in ("complete_procedure", "append_activities", HOLD, ABORT)]
    elif view["closing_failures"]:
        first = [replace(buttons["acknowledge_procedure"], label=LOOKED_AT)]
    shown = {one.name for one in first}
    return ConductVerbs(first, [one for one in buttons.values() if one.name not in shown])


def with_state(button: VerbButton, view: Mapping[str, object], conduct: Mapping[str, object]) -> VerbButton:
    """Return a button that says why it cannot be given where that follows from the conduct and not from the status alone."""
    if button.why_not is not None:
        return button
    why_not = None
    match button.name:
        case name if name in OPENS and view["live_conduct_id"] is not None:
            why_not = "It is being conducted; hold or abort it first."
        case name if name in OPENS and view["status"] not in OPENS[name] and not (view["lost"] and HELD in OPENS[name]):
            possible = " or ".join(words_of(one).lower() for one in OPENS[name])
            why_not = f"The procedure is {words_of(view['status']).lower()}; this begins where one is {possible}."
        case "resolve_procedure_step" if unresolved_step(view) is None:
            why_not = "The outcome of every step is known."
        case "advise_procedure" if conduct["waiting_for"] != WaitingFor.ADVICE:
            why_not = "It does not wait for advice."
        case "skip_procedure_wait":
            why_not = "It does not wait in a check."
        case "append_activities" if view["status"] in ENDED:
            why_not = "The procedure is over."
    return button if why_not is None else replace(button, why_not=why_not)


def fill_in(button: VerbButton, view: Shown, **fields: Any) -> VerbButton:
    """Return a button whose form is filled in, and that the state of the conduct allows."""
    why_not = button.why_not if button.lacks_permission else None
    return replace(button, href=form_href(button.operation, view["procedure_id"], **fields), why_not=why_not)


def kept_design(conduct: Shown) -> dict[str, Any]:
    """Return what a loop keeps when it is taken up: the value it is judged by, and its criterion."""
    objective = (conduct["result"] or {}).get("objective")
    if objective is None:
        return {}
    kind = "equals" if objective["tolerance"] is None else "within_tolerance"
    given = {"convergence_capture_name": objective["name"], "criterion._show": kind, "criterion.kind": kind}
    return {**given, "criterion.expected": objective["expected"], "criterion.tolerance": objective["tolerance"]}
