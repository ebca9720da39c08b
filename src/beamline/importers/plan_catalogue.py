"""Devices and Bluesky plans out of an executor: what a blueapi or a queueserver says of itself over the network."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from baton.beamline.importers.drafts import DeviceDraft, family_of_axis, family_of_words
from baton.beamline.importers.review_file import INDENT, comment, scalar
from baton.beamline.importers.touches import PlanDraft
from baton.domain.recipe.offered_plans import PLAN_PREFIX, OfferedPlan
from baton.domain.shared.schema import Schema

PROTOCOLS = ("Movable", "Readable", "Triggerable", "Flyable")
ALLOWED_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.]{0,40}")


@dataclass(frozen=True)
class ExecutorListing:
    """What an executor lists: its plans, and the protocols of each device with its class behind them where that is known."""

    executor: str
    plans: Mapping[str, OfferedPlan]
    devices: Mapping[str, Sequence[str]]


def device_drafts(listing: ExecutorListing) -> list[DeviceDraft]:
    """Return the devices of an executor, in the order of their names."""
    return [device_draft(listing.executor, name, told) for name, told in sorted(listing.devices.items())]


def device_draft(executor: str, name: str, told: Sequence[str]) -> DeviceDraft:
    """Return one device; its address in the control system is not known to the executor."""
    kind = next((word for word in reversed(told) if word not in PROTOCOLS), "")
    moves = "Movable" in told
    family = family_of_axis("", name, kind) if moves else family_of_words(name, kind)
    guessed = f"family guessed from {kind or name}" if family else f"no family known for {kind or name}"
    address = "executors do not say where it is in the control system; add its identifiers"
    return DeviceDraft(
        name=name,
        family=family,
        signals=(f"ophyd:{name}",),
        source=f"{name} of {executor}",
        questions=(guessed, address),
        notes=(", ".join(told),) if told else (),
    )


def plan_drafts(listing: ExecutorListing) -> dict[str, PlanDraft]:
    """Return what each plan touches, as far as its parameters name devices; plans whose docstring says it are left out."""
    return {name: plan_draft(listing, plan) for name, plan in sorted(listing.plans.items()) if plan.touches is None}


def plan_draft(listing: ExecutorListing, plan: OfferedPlan) -> PlanDraft:
    """Return a guess: a parameter whose every choice can be moved is written, another one that names devices is read."""
    writes, reads = list[str](), list[str]()
    for name, schema in plan.parameters_schema.get("properties", {}).items():
        choices = device_choices(schema, listing.devices)
        if choices:
            moved = all("Movable" in listing.devices[choice] for choice in choices)
            (writes if moved else reads).append(name)
    return PlanDraft(tuple(writes), tuple(reads))


def device_choices(schema: Schema, devices: Mapping[str, Sequence[str]]) -> list[str]:
    """Return the devices that a parameter takes, by itself or in a list; none for one that takes anything else."""
    level = schema.get("items", schema) if isinstance(schema, Mapping) else {}
    choices = level.get("enum") or [] if isinstance(level, Mapping) else []
    return list(choices) if choices and all(choice in devices for choice in choices) else []


def plan_sections(listing: ExecutorListing) -> Iterator[str]:
    """Yield the capabilities, methods and recipes of an executor's plans; one whose name no step can have is a comment."""
    plans = dict(sorted(listing.plans.items()))
    usable = {name: plan for name, plan in plans.items() if ALLOWED_NAME.fullmatch(name)}
    for name in plans:
        if name not in usable:
            yield f"# ? the plan {comment(name)} has a name that no step can have"
    for section, lines in (("capabilities", capability_lines), ("methods", method_lines), ("recipes", recipe_lines)):
        if usable:
            yield f"{section}:"
        for name, plan in usable.items():
            yield from lines(listing, name, plan)


def capability_lines(listing: ExecutorListing, name: str, plan: OfferedPlan) -> Iterator[str]:
    """Yield the entry of a capability."""
    yield f"{INDENT}- code: {scalar(f'baton.capability.{name}')}"
    yield f"{INDENT * 2}name: {scalar(name)}"
    if plan.description:
        yield f"{INDENT * 2}description: {scalar(comment(plan.description)[:2000])}"
    yield f"{INDENT * 2}required_affordances: []"
    yield f"{INDENT * 2}executor_shapes: [METHOD, PROCEDURE]"
    yield f"{INDENT * 2}parameters_schema: {schema_text(plan)}"


def method_lines(listing: ExecutorListing, name: str, plan: OfferedPlan) -> Iterator[str]:
    """Yield the entry of a method."""
    yield f"{INDENT}- name: {scalar(name)}"
    yield f"{INDENT * 2}capability: {scalar(f'baton.capability.{name}')}"
    yield f"{INDENT * 2}parameters_schema: {schema_text(plan)}"


def recipe_lines(listing: ExecutorListing, name: str, plan: OfferedPlan) -> Iterator[str]:
    """Yield the entry of a recipe of one step, with a binding for each parameter and what the plan seems to touch above."""
    if plan.touches is None:
        guess = plan_draft(listing, plan)
        told = f"writes {', '.join(guess.writes) or 'nothing'}, reads {', '.join(guess.reads) or 'nothing'}"
        yield f"{INDENT}# ? what it touches is guessed: {told}"
    params = {parameter: {"__binding__": parameter} for parameter in plan.parameters_schema.get("properties", {})}
    step = {"kind": "action", "name": f"{PLAN_PREFIX}{listing.executor}/{name}", "params": params}
    yield f"{INDENT}- name: {scalar(name)}"
    yield f"{INDENT * 2}capability: {scalar(f'baton.capability.{name}')}"
    yield f"{INDENT * 2}steps:"
    yield f"{INDENT * 2}- {json.dumps(step, ensure_ascii=False)}"


def schema_text(plan: OfferedPlan) -> str:
    """Return the schema of a plan's parameters in a line."""
    schema = {"$schema": "https://json-schema.org/draft/2020-12/schema", "type": "object", **plan.parameters_schema}
    return json.dumps(schema, ensure_ascii=False, sort_keys=True)
