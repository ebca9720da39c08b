"""The offline model: it answers by rules from the data of a request, guesses nothing, and proposes a caution only where the
facts tie a fault to one phase or to the only asset."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

from baton.application import language_models as models
from baton.application.language_models import ChatRequest, ChatResponse, chat_response
from baton.domain.shared.text import UNWRITABLE

Facts = Mapping[str, Any]
TEXTS: dict[str, Any] = json.loads(files(__package__).joinpath("offline.json").read_bytes())
CHOSEN = frozenset(TEXTS["chosen_ends"])  # ends of a phase that somebody chose; all others are faults
FAULT = re.compile(rf"(?<!no )(?<!without )\b({'|'.join(TEXTS['fault_words'])})\b", re.IGNORECASE)
ENDINGS: dict[str, str] = TEXTS["endings"]
LONGEST_WORD, MOST_WORDS, MAX_PHASES, MOST_CHANNELS, MOST_FILES = 40, 230, 2, 4, 6
SEVERITIES = ("", "Notice", "Caution", "Warning")  # from none to the strongest


@dataclass(frozen=True)
class PhaseFacts:
    name: str
    status: str
    error_class: str | None
    message: str
    closing_failed: bool
    deviating: bool  # whether setpoints did not read as written
    caution_target: Facts  # what a caution about its faults is put on; empty where the facts do not say

    @property
    def is_faulted(self) -> bool:
        return self.error_class is not None and self.error_class not in CHOSEN

    @property
    def quiet(self) -> bool:
        return self.status not in ("Aborted", "Held", "Truncated") and self.error_class is None and not self.closing_failed


def phases_in(facts: Facts) -> Iterator[PhaseFacts]:
    for phase in objects_in(facts, "phases"):
        failed = failure if isinstance(failure := phase.get("failure"), dict) else {}
        yield PhaseFacts(
            name=text_in(phase, "name"),
            status=word_in(phase, "status"),
            error_class=word_in(failed, "error_class") or ("Failure" if failed else None),
            message=text_in(failed, "message") or text_in(failed, "detail"),
            closing_failed=bool(phase.get("closing_failures")),
            deviating=bool(objects_in(phase, "deviations")),
            caution_target=target if isinstance(target := phase.get("caution_target"), dict) else {},
        )


def objects_in(facts: Facts, name: str) -> list[dict[str, object]]:
    found = facts.get(name)
    return [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []


def texts_in(facts: Facts, name: str) -> list[str]:
    found = facts.get(name)
    return [UNWRITABLE.sub(" ", one) for one in found if isinstance(one, str)] if isinstance(found, list) else []


def text_in(facts: Facts, name: str) -> str:
    found = facts.get(name)
    return UNWRITABLE.sub(" ", found) if isinstance(found, str) else ""


def word_in(facts: Facts, name: str) -> str:
    """Return a text among the facts that is one word, such as a time, a number or a status, or an empty one."""
    found = text_in(facts, name).strip()
    return found if len(found) <= LONGEST_WORD and len(found.split()) == 1 else ""


def quote(text: str, words: int) -> str:
    """Return a text on one line in quotation marks, cut between words, so that no number in it becomes another."""
    parts = text.replace('"', "'").split()
    short = " ".join(part for part in parts[:words] if len(part) <= LONGEST_WORD)
    return f'"{short} ..."' if len(parts) > words else f'"{short}"'


def debrief(facts: Facts) -> dict[str, Any]:
    phases = list(phases_in(facts))
    choice, confidence, why = verdict(facts, phases)
    return {"choice": choice, "confidence": confidence, "reasoning": account(facts, phases, choice, why)}


def verdict(facts: Facts, phases: Sequence[PhaseFacts]) -> tuple[str, float, str]:
    """Return the choice, its confidence, and what sets the run apart from its plan."""
    reason = text_in(facts, "terminal_event_reason")
    match text_in(facts, "terminal_event_type"):
        case "RunCompleted" if not all(phase.quiet for phase in phases):
            case = "completed badly"
        case "RunCompleted":
            case = "held and completed" if was_held(facts) else "completed"
        case "RunAborted" | "RunStopped" if any(phase.is_faulted for phase in phases):
            case = "phase faulted"
        case "RunAborted" | "RunStopped" if FAULT.search(reason):
            case = "fault named"
        case "RunAborted" | "RunStopped":
            case = "chosen" if reason else "chosen without a reason"
        case ended:
            case = "truncated" if ended == "RunTruncated" else "not ended"
    return tuple(TEXTS["verdicts"][case])


def account(facts: Facts, phases: Sequence[PhaseFacts], choice: str, why: str) -> str:
    """Return a headline and four labelled parts; of holds and channels, as much as there is room for."""
    kind = word_in(facts, "terminal_event_type")
    ended = f"was {ENDINGS[kind]}" if kind in ENDINGS else "has no end on record"
    headline = f"Run {quote(text_in(facts, 'run_name') or 'without a name', 8)} {ended}."
    happened = list(event_sentences(facts, phases))

    def compose(*further: str) -> str:
        parts = {
            "Synopsis": " ".join(synopsis_sentences(facts, kind, choice)),
            "What should have happened": TEXTS["expected"],
            "What happened": " ".join([*happened, *further]),
            "Why they differ": f"{why} {TEXTS['grounds']}",
        }
        return "\n\n".join([headline, *(f"{label}: {text}" for label, text in parts.items())])

    for sentence in (
        *hold_sentences(facts),
        *work_sentences(objects_in(facts, "phases")),
        *deviation_sentences(phases),
        *channel_sentences(objects_in(facts, "channels")[:MOST_CHANNELS]),
    ):
        if len(compose(sentence).split()) <= MOST_WORDS:
            happened += [sentence]
    return compose()


def synopsis_sentences(facts: Facts, kind: str, choice: str) -> Iterator[str]:
    subject = "with a subject" if facts.get("subject_id") else "without a subject"
    campaign = ", as part of a campaign" if facts.get("campaign_id") else ""
    yield f"The run was made under its plan, {subject}{campaign}."
    yield (f"Its last event was {kind}{at_time(facts, 'terminal_event_occurred_at')}." if kind else "No event has ended it.")
    reason = text_in(facts, "terminal_event_reason").strip()
    yield f"The reason given was {quote(reason, 14)}." if reason else "No reason was given for its end."
    yield f"By the rules this reads as {choice}."


def event_sentences(facts: Facts, phases: Sequence[PhaseFacts]) -> Iterator[str]:
    yield f"The run stands {word_in(facts, 'run_status') or 'as it was left'}."
    adjusted = word_in(facts, "adjustment_count")
    if adjusted not in ("", "0"):
        yield f"Adjustments of its parameters: {adjusted}{at_time(facts, 'last_adjusted_at', ', the latest')}."
    else:
        yield "No adjustment of its parameters is on record."
    if interrupted := at_time(facts, "interrupted_at"):
        yield f"It was interrupted{interrupted}."
    yield from phase_sentences(phases)


def hold_sentences(facts: Facts) -> Iterator[str]:
    if was_held(facts):
        reason = text_in(facts, "last_hold_reason").strip()
        why = f", for the reason {quote(reason, 12)}" if reason else ""
        yield f"Holds: {word_in(facts, 'hold_count')}{at_time(facts, 'last_held_at', ', the latest')}{why}."


def work_sentences(phases: Sequence[Facts]) -> Iterator[str]:
    """Yield what was taken, how often a worker was replaced, and the files that are left."""

    def counts_by_phase(name: str) -> str:
        counts = [(word_in(phase, name), quote(text_in(phase, "name") or "without a name", 5)) for phase in phases]
        return ", ".join(f"{count} in phase {phase}" for count, phase in counts if count not in ("", "0"))

    if images := counts_by_phase("image_count"):
        yield f"Images taken: {images}."
    if takeovers := counts_by_phase("takeover_count"):
        yield f"Work was taken over from a worker that was lost or failed: {takeovers}."
    files = [text_in(file, "name") for phase in phases for file in objects_in(phase, "files")]
    if names := ", ".join(quote(name, 3) for name in files[:MOST_FILES]):
        yield f"Files left: {names}{', and more' if len(files) > MOST_FILES else ''}."


def was_held(facts: Facts) -> bool:
    return word_in(facts, "hold_count") not in ("", "0")


def phase_sentences(phases: Sequence[PhaseFacts]) -> Iterator[str]:
    """Yield the phases that did not go as planned, as far as there is room, and a summary of the others."""
    loud = [phase for phase in phases if not phase.quiet]
    for phase in loud[:MAX_PHASES]:
        sentence = f"Phase {quote(phase.name or 'without a name', 5)} is {phase.status or 'of unknown status'}"
        if phase.error_class is not None:
            sentence += f", after {phase.error_class}: {quote(phase.message or 'no message', 10)}"
        yield f"{sentence}{', and its closing steps failed' if phase.closing_failed else ''}."
    if not phases:
        yield "No phases are on record for it."
    elif len(loud) > MAX_PHASES:
        yield "Further phases did not end as planned either."
    elif not loud:
        yield "No phase of it failed or was broken off."
    elif len(phases) > len(loud):
        yield "No other phase failed or was broken off."


def deviation_sentences(phases: Sequence[PhaseFacts]) -> Iterator[str]:
    for phase in phases:
        if phase.deviating:
            yield f"Setpoints of phase {quote(phase.name or 'without a name', 5)} read otherwise than they were written."


def channel_sentences(channels: Sequence[Facts]) -> Iterator[str]:
    if not channels:
        yield "No readings were recorded while it was on."
    for channel in channels:
        latest = " ".join(filter(None, (word_in(channel, "latest_value"), word_in(channel, "units"))))
        name = quote(text_in(channel, "channel_name") or "without a name", 4)
        sentence = f"Channel {name} has {word_in(channel, 'count') or 'some'} readings"
        yield f"{sentence}, the latest {latest}." if latest else f"{sentence}."


def at_time(facts: Facts, name: str, before: str = "") -> str:
    time = word_in(facts, name)
    return f"{before} at {time}" if time else ""


@dataclass(frozen=True)
class RecordedFault:
    """A fault, and what a caution about it is put on."""

    target_kind: str
    target_id: str
    name: str
    what: str
    tag: str
    confidence: float = 0.6

    @property
    def category(self) -> str:
        categories: dict[str, str] = TEXTS["categories"]
        return next(name for name, words in categories.items() if re.search(words, self.what, re.IGNORECASE))

    @property
    def title(self) -> str:
        return f"{self.name} failed: {self.what}"[:200].strip()


def draft(facts: Facts) -> dict[str, object]:
    ended = text_in(facts, "terminal_event_type")
    found = recorded_fault(facts, ended)
    if isinstance(found, str):
        return no_action(found)
    own = "Caution" if ended == "RunAborted" else "Notice"
    matter = {"target_kind": found.target_kind, "target_id": found.target_id, "category": found.category}
    cautions = objects_in(facts, "cautions")
    rival = next((one for one in cautions if all(text_in(one, name) == text for name, text in matter.items())), None)
    if rival is None:
        return proposal(f"Propose{own}", found, own, None, ended)
    severity = max(own, text_in(rival, "severity"), key=SEVERITIES.index)
    if severity == "Warning":
        return no_action("a Warning on the same matter is in effect already")
    if text_in(rival, "text").strip() == found.title:
        return no_action("a caution in effect says the same already")
    return proposal("ProposeSupersede", found, severity, text_in(rival, "caution_id"), ended)


def recorded_fault(facts: Facts, ended: str) -> RecordedFault | str:
    known = candidates if isinstance(candidates := facts.get("candidates"), Mapping) else {}
    faulted = [phase for phase in phases_in(facts) if phase.is_faulted]
    for phase in faulted:
        kind, id = text_in(phase.caution_target, "kind"), text_in(phase.caution_target, "id")
        if id in texts_in(known, f"{kind.lower()}s"):
            return phase_fault(phase, kind, id)
    reason = text_in(facts, "terminal_event_reason")
    if not faulted and (ended not in ("RunAborted", "RunStopped") or not FAULT.search(reason)):
        return "the run was completed" if ended == "RunCompleted" else "the record names no fault"
    assets = texts_in(known, "assets")
    if len(assets) != 1:
        return "the fault cannot be tied to one asset"
    what = one_line(reason) or str(faulted[0].error_class)
    return RecordedFault("Asset", assets[0], "The asset", what, "run-ended")


def phase_fault(phase: PhaseFacts, target_kind: str, target_id: str) -> RecordedFault:
    """Return the fault of a phase, put on what the next phase of its kind meets again."""
    name, error_class = one_line(phase.name)[:80] or "The procedure", phase.error_class or "fault"
    what = one_line(f"{error_class}: {phase.message}") if phase.message else error_class
    return RecordedFault(target_kind, target_id, name, what, error_class[:50], confidence=0.75)


def proposal(choice: str, fault: RecordedFault, severity: str, supersedes: str | None, ended: str) -> dict[str, Any]:
    description = quote(fault.what, 40)
    body = TEXTS["caution"].format(ended=ended or "no end on record", fault=description)
    instead = " It takes the place of the caution that is in effect on the same matter." if supersedes else ""
    return {
        "choice": choice,
        "confidence": fault.confidence,
        "reasoning": f"The record ties a fault to the {fault.target_kind.lower()} of the run: {description}.{instead}",
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


def no_action(why: str) -> dict[str, object]:
    return {"choice": "NoAction", "confidence": 0.8, "reasoning": TEXTS["no_caution"].format(why), "proposed_caution": None}


def one_line(text: str) -> str:
    return " ".join(text.split())


class OfflineModel:
    """Has rules for a few purposes, uses no tokens and no network."""

    async def chat(self, request: ChatRequest) -> ChatResponse:
        rule = {models.Purpose.RUN_DEBRIEF.value: debrief, models.Purpose.CAUTION_DRAFT.value: draft}.get(request.purpose)
        if rule is None:
            raise models.LanguageModelInvalidRequestError(f"The offline model has no rules for {request.purpose}.")
        answer, required = rule(_facts(request.user_message)), request.structured_output_schema.get("required", ())
        given = {key: value for key, value in answer.items() if value is not None or key in required}
        return chat_response(request, given, usage=models.NOTHING_USED, stop_reason="end", model_id=models.OFFLINE.model)


def _facts(message: str) -> dict[str, object]:
    """Return the object in a message; numbers stay texts, so that they can be repeated to the digit."""
    try:
        facts = json.loads(message, parse_int=str, parse_float=str)
    except (ValueError, RecursionError):
        facts = None
    if not isinstance(facts, dict):
        raise models.LanguageModelInvalidRequestError("The message is no JSON object.")
    return facts
