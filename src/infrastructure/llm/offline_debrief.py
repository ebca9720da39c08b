"""The debrief of a run by rules: a verdict, and an account in which nothing is counted, guessed or advised."""

from collections.abc import Iterator, Sequence
from typing import Any

from baton.infrastructure.llm.offline_facts import FAULT, Facts, Phase, objects, phases_of, quoted, said, word

ENDED = {
    "RunCompleted": "was completed",
    "RunAborted": "was aborted",
    "RunStopped": "was stopped",
    "RunTruncated": "was truncated",
}
EXPECTED = (
    "The plan was to be carried out to its regular end, its phases were to end Completed without a failure, and readings "
    "were to be taken under the parameters set at the start."
)
GROUNDS = (
    "This account was put together by rules from the record of the run; it repeats what the record holds and adds nothing."
)
MOST_WORDS = 230
MOST_PHASES, MOST_CHANNELS = 2, 4


def debriefed(facts: Facts) -> dict[str, Any]:
    """The verdict on a run, how sure it is, and the account."""
    phases = list(phases_of(facts))
    choice, confidence, why = verdict(facts, phases)
    return {"choice": choice, "confidence": confidence, "reasoning": account(facts, phases, choice, why)}


def verdict(facts: Facts, phases: Sequence[Phase]) -> tuple[str, float, str]:
    """The choice, how sure it is, and what sets the run apart from its plan."""
    faulted = any(phase.faulted for phase in phases)
    reason = said(facts, "terminal_event_reason")
    match said(facts, "terminal_event_type"):
        case "RunCompleted" if all(phase.quiet for phase in phases) and was_held(facts):
            return (
                "NominalCompletion",
                0.8,
                "The run was held on its way, as told above, and came to its planned end all the same.",
            )
        case "RunCompleted" if all(phase.quiet for phase in phases):
            return "NominalCompletion", 0.9, "Nothing in the record sets what happened apart from what was planned."
        case "RunCompleted":
            why = "The run came to its end although a phase of it did not end as planned, as told above."
            return "DegradedCompletion", 0.7, why
        case "RunAborted" | "RunStopped" if faulted:
            why = "A phase failed for a reason that nobody chose, and the run was ended before its plan was carried out."
            return "EquipmentAbort", 0.85, why
        case "RunAborted" | "RunStopped" if FAULT.search(reason):
            why = "The reason given for the end names a fault, and the plan was not carried out to its end."
            return "EquipmentAbort", 0.7, why
        case "RunAborted" | "RunStopped":
            why = "Somebody chose to end the run before its plan was carried out; the record names no fault."
            return "OperatorAbort", 0.7 if reason else 0.5, why
        case "RunTruncated":
            why = "The record of the run was cut short, so that what it holds may not be all that was measured."
            return "DataSuspect", 0.8, why
    return "DataSuspect", 0.3, "The run has no end on record yet, so that its data are not known to be whole."


def account(facts: Facts, phases: Sequence[Phase], choice: str, why: str) -> str:
    """One headline, and four parts under their labels; of holds and channels, as much as there is room for."""
    kind = word(facts, "terminal_event_type")
    headline = f"Run {quoted(said(facts, 'run_name') or 'without a name', 8)} {ENDED.get(kind, 'has no end on record')}."
    happened = list(happenings(facts, phases))

    def composed(*further: str) -> str:
        parts = {
            "Synopsis": " ".join(synopsis(facts, kind, choice)),
            "What should have happened": EXPECTED,
            "What happened": " ".join([*happened, *further]),
            "Why they differ": f"{why} {GROUNDS}",
        }
        return "\n\n".join([headline, *(f"{label}: {text}" for label, text in parts.items())])

    for sentence in (*holds_told(facts), *channels_told(objects(facts, "channels")[:MOST_CHANNELS])):
        if len(composed(sentence).split()) <= MOST_WORDS:
            happened += [sentence]
    return composed()


def synopsis(facts: Facts, kind: str, choice: str) -> Iterator[str]:
    subject = "with a subject" if facts.get("subject_id") else "without a subject"
    campaign = ", as part of a campaign" if facts.get("campaign_id") else ""
    yield f"The run was made under its plan, {subject}{campaign}."
    yield f"Its last event was {kind}{at(facts, 'terminal_event_occurred_at')}." if kind else "No event has ended it."
    reason = said(facts, "terminal_event_reason").strip()
    yield f"The reason given was {quoted(reason, 14)}." if reason else "No reason was given for its end."
    yield f"By the rules this reads as {choice}."


def happenings(facts: Facts, phases: Sequence[Phase]) -> Iterator[str]:
    yield f"The run stands {word(facts, 'run_status') or 'as it was left'}."
    adjusted = word(facts, "adjustment_count")
    if adjusted not in ("", "0"):
        yield f"Adjustments of its parameters: {adjusted}{at(facts, 'last_adjusted_at', ', the latest')}."
    else:
        yield "No adjustment of its parameters is on record."
    if interrupted := at(facts, "interrupted_at"):
        yield f"It was interrupted{interrupted}."
    yield from phases_told(phases)


def holds_told(facts: Facts) -> Iterator[str]:
    if was_held(facts):
        reason = said(facts, "last_hold_reason").strip()
        why = f", for the reason {quoted(reason, 12)}" if reason else ""
        yield f"Holds: {word(facts, 'hold_count')}{at(facts, 'last_held_at', ', the latest')}{why}."


def was_held(facts: Facts) -> bool:
    return word(facts, "hold_count") not in ("", "0")


def phases_told(phases: Sequence[Phase]) -> Iterator[str]:
    """The phases that did not go as planned, as far as there is room, and what became of the others."""
    loud = [phase for phase in phases if not phase.quiet]
    for phase in loud[:MOST_PHASES]:
        told = f"Phase {quoted(phase.name or 'without a name', 5)} is {phase.status or 'of unknown status'}"
        if phase.error_class is not None:
            told += f", after {phase.error_class}: {quoted(phase.message or 'no message', 10)}"
        yield f"{told}{', and its closing steps failed' if phase.closing_failed else ''}."
    if not phases:
        yield "No phases are on record for it."
    elif len(loud) > MOST_PHASES:
        yield "Further phases did not end as planned either."
    elif not loud:
        yield "No phase of it failed or was broken off."
    elif len(phases) > len(loud):
        yield "No other phase failed or was broken off."


def channels_told(channels: Sequence[Facts]) -> Iterator[str]:
    if not channels:
        yield "No readings were recorded while it was on."
    for channel in channels:
        latest = " ".join(filter(None, (word(channel, "latest_value"), word(channel, "units"))))
        name = quoted(said(channel, "channel_name") or "without a name", 4)
        told = f"Channel {name} has {word(channel, 'count') or 'some'} readings"
        yield f"{told}, the latest {latest}." if latest else f"{told}."


def at(facts: Facts, name: str, before: str = "") -> str:
    """When something was, where that is known."""
    time = word(facts, name)
    return f"{before} at {time}" if time else ""
