"""What a target would register, as a rehearsal walks it, and what is known of the signals that this touches."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any
from uuid import UUID

from baton.domain.conduct.control_signals import SignalSample
from baton.domain.conduct.estimates import ConductTimePort, first_position
from baton.domain.conduct.pins import pin_expansion
from baton.domain.conduct.rehearsal import RehearsalBasis, RehearsalPart, RehearsalPort, TimedRehearsal, durations_wanted
from baton.domain.conduct.rehearsal_basis import SignalBasis, load_signal_basis
from baton.domain.conduct.twin import LastValue, TwinSignal, TwinValue, ValueSource
from baton.domain.kernel import Call
from baton.domain.procedure.touched import load_written_signals
from baton.domain.recipe.expansion import Expansion
from baton.domain.shared.deployment import DeploymentPort
from baton.domain.shared.gates import GateReport
from baton.domain.shared.reads import Reads, ask
from baton.domain.step.output_names import template_words
from baton.domain.target.target_gates import PHASE, AskedTarget, arranged_walk
from baton.domain.target.targets import ConductPlan, ConductRecipe

NO_SAMPLE = SignalSample()


def load_parts(
    report: GateReport,
    target: ConductRecipe | ConductPlan,
    asked: AskedTarget,
    call: Call,
    group: int = 0,
    not_before: datetime | None = None,
) -> Reads[list[RehearsalPart]]:
    """Return the procedures that a target would register, each as its steps would be pinned."""
    subject_id, plan_id = (target.subject_id, target.plan_id) if isinstance(target, ConductPlan) else (None, None)
    words, parts = template_words(None, subject_id, call.now), list[RehearsalPart]()
    words |= {} if plan_id is None else {"run": "{run}"}
    for what, expansion in asked.expansions:
        steps = None if expansion is None else (yield from pin_steps(report, expansion, plan_id, words, what.recipe_id))
        if steps is None:
            continue
        command: Any = what.conduct_command()
        walk, space = arranged_walk(command, steps), command.searched
        point = None if space is None else getattr(command, "first_point", None) or space.first_point
        how = {"command_name": command.operation.command_name, "space": space, "point": point, "words": words}
        how |= {"group": group, "begins_at": not_before}
        parts.append(RehearsalPart(what.name, steps, walk, first_position(walk), **how))
    return parts


def pin_steps(
    report: GateReport, expansion: Expansion, plan_id: UUID | None, words: Mapping[str, str], recipe_id: UUID
) -> Reads[Expansion | None]:
    """Return steps as they would be pinned, or None where that is refused."""
    return (yield from report.ask_reads("steps_pinned", PHASE, pin_expansion(expansion, plan_id, words), (recipe_id,)))


def known_signals(basis: SignalBasis, samples: Mapping[str, SignalSample]) -> list[TwinSignal]:
    """Return what is known of signals: what was read now, else what a conduct wrote or read last."""
    found, declared = [], basis.limits
    for address in basis.owners:
        sample = samples.get(address, NO_SAMPLE)
        limits = {"owners": declared[address], "control_system": sample.control_limits}
        found.append(replace(known_signal(address, basis.last.get(address), sample), limits=limits))
    return found


def known_signal(address: str, last: LastValue | None, sample: SignalSample) -> TwinSignal:
    """Return what is known of one signal, without its limits."""
    if sample.error is None and sample.kind is not None and not isinstance(sample.value, Mapping):
        return TwinSignal(address, TwinValue(sample.value, ValueSource.READ, sample.time), sample.unit)
    if last is None:
        return TwinSignal(address, unit=sample.unit, unit_known=sample.kind is not None)
    return TwinSignal(address, TwinValue(last.value, ValueSource.LEDGER, last.at), last.unit, last.unit_known)


def rehearse_parts(parts: Sequence[RehearsalPart], at: datetime) -> Reads[TimedRehearsal]:
    """Walk procedures from the last known values on."""
    signals = yield from load_written_signals([step for part in parts for step in part.steps.every_step])
    known = yield from load_signal_basis(signals.touched)
    durations = yield from ask(ConductTimePort.step_durations, durations_wanted(parts))
    deployment = yield from ask(DeploymentPort.deployment)
    basis = RehearsalBasis(
        parts=tuple(parts),
        signals=tuple(known_signals(known, {})),
        at=at,
        durations=durations,
        actions=deployment.action_signals,
        executors=signals.executors,
        unit_policy=deployment.unit_policy,
        known=known,
    )
    return (yield from ask(RehearsalPort.rehearse, basis))
