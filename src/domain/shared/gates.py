"""Gates: rules over loaded facts. A command passes them in order until one refuses; a preflight asks all of them."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any, Generic, NamedTuple, TypeVar
from uuid import UUID

from baton.domain.shared.answer_form import AnswerForm
from baton.domain.shared.reads import Reads
from baton.domain.shared.refusals import NextCall, Refusal

F = TypeVar("F", contravariant=True)
T = TypeVar("T")
Commands = tuple[str, ...]
GATE_STREAMS = frozenset(
    {
        *("Asset", "Campaign", "Clearance", "Credential", "Dataset", "Distribution", "Enclosure", "Facility"),
        *("Method", "Permit", "Plan", "Run", "Subject", "Supply"),
    }
)
"""The streams whose events can close a gate: an append to them waits for a gated command that is being written."""
NOT_CONFIRMED = "not_confirmed"  # The reason of a gate that is closed because nobody confirms what was observed.
NOT_JUDGED = "not_judged"  # The reason of a gate that cannot be asked, because the facts it judges cannot be loaded.


@dataclass(frozen=True)
class GateFinding:
    """Why a gate is closed: everything it asks for is missing, or a part of it. Callers choose the error class."""

    total: bool
    reason: str
    detail: str
    facts: Mapping[str, Any]
    next_steps: tuple[NextCall, ...] = ()

    def refusal(self, total: type[Refusal], partial: type[Refusal], **facts: object) -> Refusal:
        """Return the refusal by the caller's class for the one case or the other, with further facts."""
        refusal = (total if self.total else partial)(self.detail, reason=self.reason, facts={**self.facts, **facts})
        refusal.next_steps = self.next_steps
        return refusal


class GateWindow(NamedTuple):
    """When a gate that is closed opens, and when one that is open closes, as far as the record says."""

    opens_at: datetime | None = None
    until: datetime | None = None


NO_WINDOW = GateWindow()


@dataclass(frozen=True)
class Gate(Generic[F]):
    """A rule that raises a refusal or returns, and the ids of what it asks about."""

    rule: Callable[[F], None]
    subjects: Callable[[F], Iterable[UUID]] = lambda _: ()
    window: Callable[[F], GateWindow] = lambda _: NO_WINDOW
    remark: Callable[[F], str | None] = lambda _: None  # What it lets pass.

    @property
    def name(self) -> str:
        return self.rule.__name__


def pass_gates(gates: Iterable[Gate[T]], facts: T) -> None:
    """Raise the refusal of the first gate that is closed."""
    for gate in gates:
        gate.rule(facts)


class GateVerdict(AnswerForm):
    """Whether a gate lets pass the commands that must pass it and, if not, the refusal that they would get."""

    gate: str
    passed: bool
    code: str | None = None
    """The class name of the refusal."""
    reason: str | None = None
    """The machine-readable cause of the refusal."""
    detail: str | None = None
    opens_at: datetime | None = None
    """When what keeps the gate closed ends, by the record; null where nothing says so."""
    until: datetime | None = None
    """When what keeps the gate open lapses, by the record; null where nothing says so."""
    facts: dict[str, Any] | None = None
    subjects: tuple[UUID, ...]
    asked_by: tuple[str, ...]
    """The commands that must pass the gate."""


class CommandVerdict(AnswerForm):
    """Whether a command would pass all its gates and, if not, the first that refuses it."""

    command: str
    """The command."""
    passed: bool
    refused_by: str | None
    """The first gate that refuses."""


class GateReport:
    """The verdicts of gates in the order they were asked, each for the commands that must pass it."""

    def __init__(self) -> None:
        self.verdicts: list[GateVerdict] = []
        self.refusals: list[Refusal] = []  # Those of the gates that are closed, in the same order.

    def note(
        self,
        gate: str,
        commands: Commands,
        refusal: Refusal | None,
        subjects: Iterable[UUID] = (),
        remark: str | None = None,
        window: GateWindow = NO_WINDOW,
    ) -> None:
        """Add a verdict, unless no command must pass the gate; the remark says what it lets pass."""
        if not commands:
            return
        cause: dict[str, Any] = {"detail": remark}
        if refusal is not None:
            self.refusals.append(refusal)
            cause = {name: getattr(refusal, name) for name in ("code", "reason", "detail", "facts")}
        about = tuple(sorted(subjects))
        cause |= window._asdict()
        self.verdicts.append(GateVerdict(gate=gate, passed=refusal is None, subjects=about, asked_by=commands, **cause))

    def ask(
        self,
        gate: str,
        commands: Commands,
        judge: Callable[[], None],
        subjects: Iterable[UUID] = (),
        remark: str | None = None,
        window: GateWindow = NO_WINDOW,
    ) -> None:
        """Ask a gate by the rule that raises a refusal or returns; the remark is noted where it lets pass."""
        refused = None
        try:
            judge()
        except Refusal as refusal:
            refused = refusal
        self.note(gate, commands, refused, subjects, remark, window)

    def ask_all(self, gates: Sequence[Gate[T]], commands: Commands, facts: T) -> None:
        """Ask all of these gates about the same facts."""
        for gate in gates:
            said = (gate.subjects(facts), gate.remark(facts), gate.window(facts))
            self.ask(gate.name, commands, partial(gate.rule, facts), *said)

    def ask_reads(self, gate: str, commands: Commands, reads: Reads[T], subjects: Iterable[UUID] = ()) -> Reads[T | None]:
        """Ask a gate by loading what it needs; return that, or None where loading is refused."""
        try:
            loaded = yield from reads
        except Refusal as refusal:
            self.note(gate, commands, refusal, subjects)
            return None
        self.note(gate, commands, None, subjects)
        return loaded

    def skip(self, gates: Iterable[str], commands: Commands) -> None:
        """Note gates that cannot be asked because their facts are missing, unless no command must pass them."""
        if not commands:
            return
        detail = "This cannot be judged before what is missing is found."
        for gate in gates:
            verdict = GateVerdict(gate=gate, passed=False, reason=NOT_JUDGED, detail=detail, subjects=(), asked_by=commands)
            self.verdicts.append(verdict)

    def command_verdict(self, command: str) -> CommandVerdict:
        """Return what the verdicts so far mean for a command."""
        refused_by = next((one.gate for one in self.verdicts if command in one.asked_by and not one.passed), None)
        return CommandVerdict(command=command, passed=refused_by is None, refused_by=refused_by)
