"""What Baton says to a run before it begins: the question for its gates, and the verdict."""

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple
from uuid import UUID

from baton_bluesky.keys import timestamp_text
from baton_bluesky.reduction import reduce_document
from baton_bluesky.service import BatonService, HttpAnswer, NoServiceError

ASKED_SECONDS = 5.0
REMEMBERED_SECONDS = 60.0  # How long a plan and the parameters of its method are not asked for again.
NO_RUN = UUID(int=0)  # Asked for to see whether the caller may ask for runs.
OWN_PERMISSION = "grants_present"
"""The gate that asks whether the caller may start runs itself: a witness may not, and starts none."""


@dataclass(frozen=True)
class Passed:
    """Every gate lets the run pass."""

    gates: tuple[str, ...]
    at: float
    tells_holds: bool
    """Whether the caller may ask if a run is Held."""

    def note(self) -> dict[str, Any]:
        """Return what the start document says of it."""
        return {"preflight_at": timestamp_text(self.at), "gates": list(self.gates)}


@dataclass(frozen=True)
class Closed:
    """Gates are closed, or the service refuses to judge the run; the sentences say why."""

    sentences: tuple[str, ...]
    reasons: tuple[str, ...] = ()


@dataclass(frozen=True)
class Unreachable:
    """The service gave no answer."""

    sentence: str

    def note(self) -> dict[str, Any]:
        """Return what the start document says of it."""
        return {"gates": None, "unreachable": self.sentence}


@dataclass(frozen=True)
class Overridden:
    """A person lets everything pass, and says why."""

    reason: str

    def note(self) -> dict[str, Any]:
        """Return what the start document says of it."""
        return {"gates": None, "override_reason": self.reason}


Verdict = Passed | Closed | Unreachable | Overridden


class RunQuestion(NamedTuple):
    """A run that is about to begin: the name of its Bluesky plan, the plan's arguments, and the name of the sample."""

    plan_name: str
    arguments: Mapping[str, Any]
    subject: str | None


class PlanFacts(NamedTuple):
    """A plan of the service, the parameters that its method knows, and when they were asked for."""

    plan_id: str
    parameters: frozenset[str]
    tells_holds: bool
    at: float


class RefusedByService(Exception):
    """The service refused what a preflight needs to know."""

    def __init__(self, sentence: str, reason: str) -> None:
        super().__init__(sentence)
        self.reason = reason


class RunPreflight:
    """Asks the service whether a run may begin."""

    def __init__(self, service: BatonService, plans: str | Mapping[str, str]) -> None:
        self._service, self._plans = service, plans
        self._known: dict[str, PlanFacts] = {}

    def ask(self, question: RunQuestion) -> Verdict:
        """Return the verdict of all gates."""
        try:
            plan = self._plan(self._plan_named(question.plan_name))
            body: dict[str, Any] = {"name": question.plan_name[:200] or "plan", "plan_id": plan.plan_id}
            given, _ = reduce_document(dict(question.arguments))
            body["override_parameters"] = {name: value for name, value in given.items() if name in plan.parameters}
            if (subject_id := self._subject(question.subject)) is not None:
                body["subject_id"] = subject_id
            return verdict_of_report(good(self._service.post("/runs/preflight", body)), plan.tells_holds)
        except NoServiceError as error:
            return Unreachable(f"Baton at {self._service.address} does not answer ({error}).")
        except RefusedByService as error:
            return Closed((str(error),), (error.reason,))
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            return Unreachable(
                f"The answer of {self._service.address} is not one of Baton: {type(error).__name__}: {error}."
            )

    def _plan_named(self, plan_name: str) -> str:
        if isinstance(self._plans, str):
            return self._plans
        chosen = self._plans.get(plan_name) or self._plans.get("default")
        if chosen is None:
            sentence = f"No Baton plan is named for the Bluesky plan {plan_name}; add it, or one for `default`."
            raise RefusedByService(sentence, "no_plan")
        return chosen

    def _plan(self, named: str) -> PlanFacts:
        known = self._known.get(named)
        if known is None or time.monotonic() - known.at > REMEMBERED_SECONDS:
            plan_id = named if is_id(named) else self._only_plan(named)
            plan = good(self._service.get(f"/plans/{plan_id}"))
            method = good(self._service.get(f"/methods/{plan['method_id']}"))
            parameters = frozenset((method.get("parameters_schema") or {}).get("properties") or ())
            tells_holds = self._service.get(f"/runs/{NO_RUN}").status == 404
            known = self._known[named] = PlanFacts(plan_id, parameters, tells_holds, time.monotonic())
        return known

    def _subject(self, name: str | None) -> str | None:
        """Return the id of the only subject with a name; where there are none or several, the run begins without."""
        found = named_exactly(good(self._service.get("/subjects", name=name)), name) if name else []
        return found[0]["subject_id"] if len(found) == 1 else None

    def _only_plan(self, name: str) -> str:
        found = named_exactly(good(self._service.get("/plans", name=name)), name)
        if len(found) != 1:
            number = f"{len(found)}" if found else "none"
            raise RefusedByService(f"One plan named {name!r} is needed, and Baton has {number}; give its id.", "no_plan")
        return str(found[0]["plan_id"])


def good(answer: HttpAnswer) -> dict[str, Any]:
    """Return the body of a good answer; raise what keeps the run from being judged."""
    if answer.status == 429 or answer.status >= 500:
        raise NoServiceError(answer.sentence)
    if answer.status >= 400:
        raise RefusedByService(str(answer.body.get("detail") or answer.sentence), str(answer.body.get("reason")))
    return answer.body


def verdict_of_report(report: Mapping[str, Any], tells_holds: bool) -> Passed | Closed:
    """Return the verdict of a preflight: that of every gate of start_run but the caller's own permission."""
    gates = [gate for gate in report["gates"] if "start_run" in gate["asked_by"] and gate["gate"] != OWN_PERMISSION]
    closed = [gate for gate in gates if not gate["passed"]]
    if not closed:
        return Passed(tuple(gate["gate"] for gate in gates), time.time(), tells_holds)
    return Closed(tuple(str(gate["detail"]) for gate in closed), tuple(str(gate["reason"]) for gate in closed))


def named_exactly(page: Mapping[str, Any], name: str) -> list[Any]:
    """Return the items of a page that have exactly this name."""
    return [item for item in page["items"] if item["name"] == name]


def is_id(text: str) -> bool:
    """Return whether a text is an id."""
    try:
        UUID(text)
    except ValueError:
        return False
    return True
