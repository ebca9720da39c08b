"""The debrief of a run: a verdict on how it went, and the narrative that goes into its logbook."""

from collections.abc import Mapping
from typing import Any

from baton.domain.agent.conclusions import MOST_CHANNELS, Conclusion, Material, Task, Terminal, run_facts
from baton.domain.agent.prompts import RUN_DEBRIEF, DebriefAnswer, DebriefChoice
from baton.domain.decision.decision import Decision
from baton.domain.kernel import instant
from baton.domain.run.endings import phases_of
from baton.domain.run.observations import Channel
from baton.domain.run.run import Run
from baton.domain.shared.reads import Reads, records_of

RUN_DEBRIEFER = "RunDebriefer"
VERDICTS = frozenset(choice.value for choice in DebriefChoice)


def debrief_material(run: Run, terminal: Terminal | None) -> Reads[Material]:
    """The run with its phases and what it recorded."""
    phases = yield from phases_of(run)
    channels = yield from records_of(Channel, run_id=run.id)
    shown = [channel_facts(channel) for channel in channels[:MOST_CHANNELS]]
    return Material({**run_facts(run, terminal, phases), "channels": shown})


def channel_facts(channel: Channel) -> dict[str, Any]:
    return {
        "channel_name": channel.channel_name,
        "count": channel.count,
        "first_recorded_at": instant(channel.first_recorded_at),
        "latest_recorded_at": instant(channel.latest_recorded_at),
        "latest_value": channel.latest_value,
        "units": channel.units,
        "simulated": channel.simulated,
    }


def concluded_debrief(answer: Mapping[str, Any], material: Material) -> Conclusion:
    debrief = DebriefAnswer.model_validate(dict(answer))
    return Conclusion(debrief.choice.value, debrief.confidence, debrief.reasoning)


def narrative_of(decision: Decision) -> str | None:
    """The text for the logbook; nothing where no verdict was reached."""
    return decision.reasoning if decision.context == DEBRIEF.context and decision.choice in VERDICTS else None


DEBRIEF = Task(
    kind=RUN_DEBRIEFER,
    workflow="debrief",
    context="RunDebrief",
    conflicted="DebriefConflicted",
    deferred="DebriefDeferred",
    prompt=RUN_DEBRIEF,
    commands=frozenset(
        {
            "RequestDecisionDebrief",
            "RecordAgentDecision",
            "AppendInferences",
            "AppendRunLogbookEntries",
            "GetRun",
            "ListProcedures",
            "ListRunChannels",
        }
    ),
    material=debrief_material,
    conclude=concluded_debrief,
)
