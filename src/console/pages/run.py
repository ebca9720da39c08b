"""Run: one run from its parameters to what it left. Where it is and what it waits for, its readings as they come, its data,
decisions, logbook and debrief, its holds and adjustments, and what it was at any moment."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any
from uuid import UUID

from markupsafe import Markup

from baton.console.conduct_verbs import LOOKED_AT
from baton.console.exports import serve_export
from baton.console.page import SECOND, Context, page
from baton.console.page_queries import PageQueries, Shown
from baton.console.plots import NARROW, Series, line_plot
from baton.console.point_plots import load_plot
from baton.console.units import load_units, other_units
from baton.console.verbs import VerbButton, form_href, verbs_of
from baton.domain.conduct.ends import ABORTED
from baton.domain.conduct.point_list import ListProcedurePoints
from baton.domain.conduct.run_conduct import GetRunConduct
from baton.domain.conduct.views import GetProcedureConduct
from baton.domain.data.dataset import ListDatasets
from baton.domain.data.distribution import ListDistributions
from baton.domain.data.preview import GetDatasetPreview
from baton.domain.data.run_documents import ListRunDocuments
from baton.domain.decision.decision import GetDecision
from baton.domain.recipe.method import GetMethod
from baton.domain.recipe.plan import GetPlan
from baton.domain.run.logbooks import (
    AppendRunLogbookEntries,
    Channel,
    ListRunChannels,
    ListRunLogbookEntries,
    ListRunObservations,
    Observation,
    RunLogbookEntryKind,
)
from baton.domain.run.run import HELD, LIVE, RUNNING, Run, RunStatus
from baton.domain.run.run_views import GetRun
from baton.domain.run.witness import WitnessChange, WitnessedEnd
from baton.domain.shared.units import UnitError, convert
from baton.domain.step.results import CONDUCT_LOST
from baton.domain.views.run_comparison import CompareRuns
from baton.domain.views.run_report import GetRunReport, ReportFormat

SHOWN_CHANNELS = 8
PLOTTED_READINGS, MOST_READINGS = 640, 500  # of all channels together, and of one
SHOWN_DATASETS, SHOWN_ENTRIES, SHOWN_DECISIONS = 8, 10, 6
HISTORY_PAGE, HISTORY_PAGES = 100, 5
REPORT_POLICY = b"default-src 'none'; style-src 'unsafe-inline'; img-src data:; frame-ancestors 'none'"
UNIT = "unit."  # before the name of a channel: the unit to show it in
FIRST_VERBS = {
    RUNNING: ("conduct_run", "adjust_run", "hold_run", "complete_run"),
    HELD: ("resume_run", "adjust_run", "stop_run", "abort_run"),
}  # What is most likely wanted in each state.

NOT_OBEYED = ("conduct_run", "adjust_run", "complete_run", "stop_run", "abort_run")  # By a run that happens elsewhere.

run = page(
    "/runs/{run_id}",
    "Run",
    "One run: where it is, its readings, data, decisions and logbook, with the verbs that hold, adjust or end it.",
    template="run.html",
    halts="Run",
)


@run.title_from
async def load_name(queries: PageQueries) -> str:
    return (await queries.ask(GetRun, queries.id("run_id"))).name


@run.region("head", asks=[GetRun, GetRunConduct, Run.aggregate.history], watches=("Procedure",), every=SECOND)
async def load_head(queries: PageQueries) -> Context:
    id = queries.id("run_id")
    view, conducted = await queries.show(GetRun, id), await queries.show(GetRunConduct, id)
    current_id = conducted["current_procedure_id"]
    current = await queries.show_found(GetProcedureConduct, current_id) if current_id else None
    href = f"/console/runs/{id}"
    buttons = verbs_of(Run.aggregate, view, queries)
    failure = failure_of(conducted["result"] or {})
    failed = view["status"] == RunStatus.ABORTED and failure is not None and failure["error_class"] != CONDUCT_LOST
    if view["witness"] is not None:
        buttons = [
            one for one in buttons if one.name not in NOT_OBEYED and (one.name != "hold_run" or view["witness"]["holdable"])
        ]
    first = first_verbs(view, conducted, buttons)
    if failed:
        first = [replace(one, label=LOOKED_AT) for one in buttons if one.name == "acknowledge_run"]
    return {
        "view": view,
        "conduct": conducted,
        "live": view["status"] in LIVE,
        "phases": phases_of(view, conducted),
        "closed_gates": await load_closed_gates(queries) if view["witness"] is not None else [],
        "failure": failure,
        "ended_by_conduct": failed,
        "current": current,
        "first": first,
        "others": [one for one in buttons if one.name not in {shown.name for shown in first}],
        "note_href": form_href(AppendRunLogbookEntries.operation, id, **{"entries._count": 1, "back": href}),
        "again_href": f"/console/start/plans/{view['plan_id']}?from={id}",
        "href": href,
        "may_take_documents": queries.may(ListRunDocuments),
        "may_take_report": queries.may(GetRunReport),
        "may_compare": queries.may(CompareRuns),
    }


async def load_closed_gates(queries: PageQueries) -> list[dict[str, Any]]:
    """Return the gates that were closed where a witnessed run began."""
    first = await queries.show(Run.aggregate.history, queries.id("run_id"), limit=1)
    gates = first["items"][0]["payload"]["gates"] or []
    return [gate for gate in gates if not gate["passed"] and gate["detail"]]


@run.region("witness", asks=[GetRun, Run.aggregate.history], every=5.0)
async def load_witness(queries: PageQueries) -> Context:
    view = await queries.show(GetRun, queries.id("run_id"))
    events = [] if view["witness"] is None else await load_history(queries)
    told = [one["payload"] for one in events if one["event_type"] == "RunWitnessChanged"]
    end = next((one["end"] for one in told if one["end"] is not None), None)
    files = [one["payload"] for one in events if one["event_type"] == "RunFilesRegistered"]
    return {
        "view": view,
        "live": view["status"] in LIVE,
        "gates": events[0]["payload"]["gates"] if events else None,
        "override_reason": events[0]["payload"]["override_reason"] if events else None,
        "pauses": pauses_in(told),
        "end": end,
        "evidence": None if end is None else WitnessedEnd.model_validate(end).evidence,
        "registered": sum(len(one["dataset_ids"]) for one in files),
        "left": files[-1]["left"] if files else [],
    }


def pauses_in(told: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the pauses of a RunEngine, the latest first, each with what ended it."""
    pauses: list[dict[str, Any]] = []
    for one in told:
        if one["change"] == WitnessChange.PAUSED:
            pauses.append({"since": one["at"], "until": None})
        elif one["change"] in (WitnessChange.RESUMED, WitnessChange.ENDED) and pauses and pauses[-1]["until"] is None:
            pauses[-1]["until"] = one["at"]
    return list(reversed(pauses))


serve_export("/runs/{run_id}/documents.jsonl", "run_id", ListRunDocuments)
serve_export("/runs/{run_id}/report.html", "run_id", GetRunReport, REPORT_POLICY)
serve_export("/runs/{run_id}/report.zip", "run_id", GetRunReport, format=ReportFormat.ZIP)


def first_verbs(view: Shown, conducted: Shown, buttons: Sequence[VerbButton]) -> list[VerbButton]:
    """Return the buttons that the state of a run calls for; what conducts itself is not begun or completed by hand."""
    own = {"conduct_run", "complete_run"} if view["live_conduct_id"] is not None or not view["phases"] else set()
    if conducted["conduct_id"] is None:
        own -= {"complete_run"}
    by_name = {one.name: one for one in buttons}
    wanted = [name for name in FIRST_VERBS.get(view["status"], ()) if name not in own and name in by_name]
    return [by_name[name] for name in wanted]


def phases_of(view: Shown, conducted: Shown) -> list[dict[str, Any]]:
    """Return the phases of a run in the order in which they are conducted, each with its state and where it is."""
    order = {phase["procedure_id"]: place for place, phase in enumerate(conducted["phases"])}
    results = {one["procedure_id"]: one for one in (conducted["result"] or {}).get("phases", ())}
    phases = sorted(view["phases"] or (), key=lambda phase: order.get(phase["procedure_id"], len(order)))
    return [
        {
            **phase,
            "current": phase["procedure_id"] == conducted["current_procedure_id"],
            "failure": failure_of(results.get(phase["procedure_id"], {})),
        }
        for phase in phases
    ]


def failure_of(result: Shown) -> Shown | None:
    """Return what failed in a conduct; an abort that somebody asked for is no failure."""
    failure: Shown | None = result.get("failure")
    return None if failure is None or failure["error_class"] == ABORTED.error_class else failure


async def load_history(queries: PageQueries) -> list[dict[str, Any]]:
    """Return the events of the run, oldest first, as far as they are worth reading for a page."""
    events: list[dict[str, object]] = []
    cursor = None
    for _ in range(HISTORY_PAGES):
        answer = await queries.show(Run.aggregate.history, queries.id("run_id"), limit=HISTORY_PAGE, cursor=cursor)
        events += answer["items"]
        cursor = answer["next_cursor"]
        if cursor is None:
            break
    return events


@run.region(
    "plot", asks=[GetRunConduct, ListProcedurePoints], watches=("Procedure",), every=SECOND, template="conduct/plot.html"
)
async def load_points(queries: PageQueries) -> Context:
    id = queries.id("run_id")
    conducted = await queries.show(GetRunConduct, id)
    begun = [one["procedure_id"] for one in conducted["phases"] if one["conduct_id"] is not None]
    shown = conducted["current_procedure_id"] or (begun[-1] if begun else None)
    return {"points": {"items": ()}} if shown is None else await load_plot(queries, UUID(shown), f"/console/runs/{id}")


@run.region("readings", asks=[ListRunChannels, ListRunObservations], watches=("Run",), every=2.0)
async def load_readings(queries: PageQueries) -> Context:
    id, wanted = queries.id("run_id"), queries.query.get("channel")
    channels = (await queries.ask(ListRunChannels, id)).items
    shown = [one for one in channels if one.channel_name == wanted] if wanted else channels[:SHOWN_CHANNELS]
    limit = min(MOST_READINGS, PLOTTED_READINGS // max(1, len(shown)))
    answers = await asyncio.gather(
        *(
            queries.ask(ListRunObservations, id, channel_name=one.channel_name, limit=limit, order="desc", include=None)
            for one in shown
        )
    )
    if any(one.units for one in shown):
        await load_units()
    plots = [channel_plot(one, answer.items, queries) for one, answer in zip(shown, answers, strict=True)]
    names = {one.channel_name for one in shown}
    return {
        "plots": plots,
        "others": [one for one in channels if one.channel_name not in names],
        "chosen": wanted,
        "kept": [(name, text) for name, text in queries.query.items() if name == "channel" or name.startswith(UNIT)],
        "href": f"/console/runs/{id}",
    }


@dataclass(frozen=True)
class ChannelPlot:
    """One channel as it is shown: its latest reading and its plot, in the chosen unit."""

    name: str
    field: str
    unit: str | None
    units: tuple[str, ...]
    count: int
    shown: int
    simulated: bool
    latest: float
    sampled_at: datetime
    plot: Markup
    refusal: str | None = None


def channel_plot(channel: Channel, readings: Sequence[Observation], queries: PageQueries) -> ChannelPlot:
    """Return the plot of a channel's newest readings."""
    name, declared = channel.channel_name, channel.units
    field = f"{UNIT}{name}"
    unit, refusal = queries.query.get(field) or declared, None
    points = [(one.sampled_at.timestamp(), one.value) for one in reversed(readings)]
    latest = channel.latest_value
    if unit != declared and declared is not None and unit is not None:
        try:
            points = [(at, convert(value, declared, unit)) for at, value in points]
            latest = convert(latest, declared, unit)
        except UnitError:
            unit, refusal = declared, f"What is measured in {declared} cannot be shown in {unit}; choose another unit."
    label = f"{name} over time, {len(points)} readings; the latest is {latest:.6g} {unit or ''}".strip()
    plot = line_plot([Series(name, tuple(points), unit)], label=label, zone=queries.zone, latest=False, width=NARROW)
    return ChannelPlot(
        name=name,
        field=field,
        unit=unit,
        units=other_units(declared),
        count=channel.count,
        shown=len(points),
        simulated=channel.simulated,
        latest=latest,
        sampled_at=channel.latest_sampled_at,
        plot=plot,
        refusal=refusal,
    )


@run.region("parameters", asks=[GetRun], watches=("Plan", "Method"))
async def load_parameters(queries: PageQueries) -> Context:
    view = await queries.show(GetRun, queries.id("run_id"))
    plan = await queries.show_found(GetPlan, view["plan_id"])
    method = None if plan is None else await queries.show_found(GetMethod, plan["method_id"])
    properties = ((method or {}).get("parameters_schema") or {}).get("properties", {})
    history = await load_history(queries) if view["adjustment_count"] and queries.may(Run.aggregate.history) else []
    adjusted = {name: event for event in history if event["event_type"] == "RunAdjusted" for name in patch_of(event)}
    rows = [
        {
            "name": name,
            "value": value,
            "unit": (properties.get(name, {}).get("unit") or {}).get("code"),
            "own": name in view["override_parameters"],
            "default": (plan or {}).get("default_parameters", {}).get(name),
            "adjusted": adjusted.get(name),
        }
        for name, value in view["effective_parameters"].items()
    ]
    return {"rows": rows, "view": view, "plan_known": plan is not None}


def patch_of(event: Shown) -> Shown:
    """Return what an adjustment changed."""
    patch: Shown = event["payload"]["parameters_patch"]
    return patch


@run.region("story", asks=[GetRun, Run.aggregate.history])
async def load_story(queries: PageQueries) -> Context:
    view, events = await queries.show(GetRun, queries.id("run_id")), await load_history(queries)
    started = next((one for one in events if one["event_type"] in ("RunStarted", "RunWitnessed")), None)
    return {
        "holds": holds_in(events),
        "adjustments": [one for one in reversed(events) if one["event_type"] == "RunAdjusted"],
        "cautions": started["payload"]["acknowledged_cautions"] if started else [],
        "last": events[-1]["version"] if events else 1,
        "view": view,
        "href": f"/console/runs/{view['run_id']}",
    }


def holds_in(events: Sequence[Mapping[str, object]]) -> list[dict[str, Any]]:
    """Return the holds of a run, the latest first, each with what ended it."""
    holds: list[dict[str, object]] = []
    for event in events:
        if event["event_type"] == "RunHeld":
            holds.append({"held": event, "resumed": None})
        elif event["event_type"] == "RunResumed" and holds:
            holds[-1]["resumed"] = event
    return list(reversed(holds))


@run.region("data", asks=[ListDatasets], watches=("Dataset", "Distribution"))
async def load_data(queries: PageQueries) -> Context:
    id = queries.id("run_id")
    answer = await queries.show(ListDatasets, producing_run_id=id, limit=SHOWN_DATASETS, order="desc")
    items = answer["items"]
    copies = await asyncio.gather(*(load_copies(queries, item["dataset_id"]) for item in items))
    return {
        "rows": list(zip(items, copies, strict=True)),
        "more": answer["next_cursor"] is not None,
        "may_see_previews": queries.may(GetDatasetPreview),
        "id": id,
    }


async def load_copies(queries: PageQueries, dataset_id: str) -> list[dict[str, object]] | None:
    """Return the copies of a dataset; None where the person may not see them."""
    answer = await queries.show_if_permitted(ListDistributions, dataset_id=dataset_id, limit=5)
    return None if answer is None else list(answer["items"])


@run.region("logbook", asks=[ListRunLogbookEntries], every=5.0)
async def load_logbook(queries: PageQueries) -> Context:
    id = queries.id("run_id")
    debriefs = await queries.show(
        ListRunLogbookEntries, id, entry_kind=RunLogbookEntryKind.DEBRIEF.value, limit=1, order="desc"
    )
    notes = await queries.show(
        ListRunLogbookEntries,
        id,
        entry_kind=RunLogbookEntryKind.NOTE.value,
        limit=SHOWN_ENTRIES,
        order="desc",
        cursor=queries.query.get("notes") or None,
    )
    debrief = next(iter(debriefs["items"]), None)
    return {
        "view": None if debrief is None else await queries.show_found(GetRun, id),
        "debrief": debrief,
        "notes": notes["items"],
        "next_notes": notes["next_cursor"],
        "may_write": queries.may(AppendRunLogbookEntries.operation),
        "note_href": form_href(AppendRunLogbookEntries.operation, id, **{"entries._count": 1}),
        "href": f"/console/runs/{id}",
    }


@run.region("decisions", asks=[Run.aggregate.history, ListRunLogbookEntries, GetDecision], watches=("Decision",))
async def load_decisions(queries: PageQueries) -> Context:
    id = queries.id("run_id")
    events = await load_history(queries)
    debriefs = await queries.show(
        ListRunLogbookEntries, id, entry_kind=RunLogbookEntryKind.DEBRIEF.value, limit=SHOWN_DECISIONS, order="desc"
    )
    followed = {one["payload"].get("decided_by_decision_id"): one["event_type"] for one in events}
    followed |= {one["decision_id"]: None for one in debriefs["items"]}
    ids = [one for one in followed if one][-SHOWN_DECISIONS:]
    found = await asyncio.gather(*(queries.show_found(GetDecision, one) for one in ids))
    decisions = [{**one, "led_to": followed[one["id"]]} for one in found if one is not None]
    return {"decisions": sorted(decisions, key=lambda one: str(one["decided_at"]), reverse=True)}
