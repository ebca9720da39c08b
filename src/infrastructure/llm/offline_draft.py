"""Drafts of cautions by rules: nothing is proposed unless a fault can be told of one phase or the only asset."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from baton.infrastructure.llm.offline_facts import FAULT, Facts, Phase, objects, phases_of, quoted, said, texts

CATEGORIES = {
    "InterlockQuirk": r"interlock|tripped|permit|alarm",
    "Wiring": r"encoder|cable|wiring|connect|offline|unresponsive|short circuit|signal lost|lost signal",
    "Calibration": r"calibrat|drift|offset|misalign|tolerance",
    "Wear": r"stuck|jam|backlash|worn|wear|leak|overheat|collision",
    "OperationalWindow": r"beam|vacuum|temperature|timed? ?-?out|window|cooling",
}
"""What a fault is about by the words it is told in, the first that fits; the way a procedure goes, where none does."""
GOTCHA = "ProcedureGotcha"
SEVERITIES = ("", "Notice", "Caution", "Warning")
"""From none to the strongest."""
REFUSAL = (
    "Nothing is proposed: {}. A caution is drafted only for a fault that the record ties to one phase of the run or "
    "to its only asset."
)


@dataclass(frozen=True)
class Fault:
    """What went wrong, and what that is to be noted on."""

    target_kind: str
    target_id: str
    name: str
    what: str
    tag: str
    confidence: float = 0.6

    @property
    def category(self) -> str:
        found = (name for name, words in CATEGORIES.items() if re.search(words, self.what, re.IGNORECASE))
        return next(found, GOTCHA)

    @property
    def title(self) -> str:
        return f"{self.name} failed: {self.what}"[:200].strip()


def drafted(facts: Facts) -> dict[str, Any]:
    """Whether the next operator should be told, and what."""
    ended = said(facts, "terminal_event_type")
    found = fault_of(facts, ended)
    if isinstance(found, str):
        return refused(found)
    own = "Caution" if ended == "RunAborted" else "Notice"
    rival = next((caution for caution in objects(facts, "cautions") if same_matter(caution, found)), None)
    if rival is None:
        return proposed(f"Propose{own}", found, own, None, ended)
    severity = max(own, said(rival, "severity"), key=SEVERITIES.index)
    if severity == "Warning":
        return refused("a Warning on the same matter is in effect already")
    if said(rival, "text").strip() == found.title:
        return refused("a caution in effect says the same already")
    return proposed("ProposeSupersede", found, severity, said(rival, "caution_id"), ended)


def fault_of(facts: Facts, ended: str) -> Fault | str:
    """The fault that the record tells of, or why there is none to be noted."""
    candidates = facts.get("candidates")
    known = candidates if isinstance(candidates, Mapping) else {}
    faulted = [phase for phase in phases_of(facts) if phase.faulted]
    for phase in faulted:
        kind, id = said(phase.caution_target, "kind"), said(phase.caution_target, "id")
        if id in texts(known, f"{kind.lower()}s"):
            return fault_in(phase, kind, id)
    reason = said(facts, "terminal_event_reason")
    if not faulted and (ended not in ("RunAborted", "RunStopped") or not FAULT.search(reason)):
        return "the run was completed" if ended == "RunCompleted" else "the record names no fault"
    assets = texts(known, "assets")
    if len(assets) != 1:
        return "the fault cannot be tied to one asset"
    what = one_line(reason) or str(faulted[0].error_class)
    return Fault("Asset", assets[0], "The asset", what, "run-ended")


def fault_in(phase: Phase, target_kind: str, target_id: str) -> Fault:
    """The fault of a phase, noted on what the next phase of its kind meets again."""
    name, error_class = one_line(phase.name)[:80] or "The procedure", phase.error_class or "fault"
    what = one_line(f"{error_class}: {phase.message}") if phase.message else error_class
    return Fault(target_kind, target_id, name, what, error_class[:50], confidence=0.75)


def proposed(choice: str, fault: Fault, severity: str, supersedes: str | None, ended: str) -> dict[str, Any]:
    told = quoted(fault.what, 40)
    body = (
        f"A run ended with {ended or 'no end on record'} after this fault was recorded: {told}. Look at the state of the "
        "equipment concerned before the next run, and see that what failed works again before relying on it."
    )
    instead = " It takes the place of the caution that is in effect on the same matter." if supersedes else ""
    return {
        "choice": choice,
        "confidence": fault.confidence,
        "reasoning": f"The record ties a fault to the {fault.target_kind.lower()} of the run: {told}.{instead}",
        "proposed_caution": {
            "target_kind": fault.target_kind,
            "target_id": fault.target_id,
            "category": fault.category,
            "severity": severity,
            "title": fault.title,
            "body": body,
            "tags": ["drafted-by-rules", fault.tag],
            "supersedes_caution_id": supersedes,
        },
    }


def refused(why: str) -> dict[str, Any]:
    return {"choice": "NoAction", "confidence": 0.8, "reasoning": REFUSAL.format(why), "proposed_caution": None}


def same_matter(caution: Facts, fault: Fault) -> bool:
    told = (said(caution, "target_kind"), said(caution, "target_id"), said(caution, "category"))
    return told == (fault.target_kind, fault.target_id, fault.category)


def one_line(text: str) -> str:
    return " ".join(text.split())
