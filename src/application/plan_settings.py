"""The settings of the executors of Bluesky plans: where each is, and which plans steps may have carried out there."""

import json
from collections.abc import Mapping
from enum import StrEnum
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, StringConstraints

from baton.application.plant import PluginName
from baton.domain.recipe.offered_plans import PlanTouches
from baton.domain.step.plan_steps import PausePolicy

DAY = 86_400.0  # seconds: how long a plan may take unless its entry says otherwise
ExecutorName = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_-]{0,49}$")]
BlueskyPlanName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_.]{0,40}$")]


class PlanExecutorKind(StrEnum):
    """The executors that have a built-in adapter."""

    QUEUESERVER = "queueserver"
    BLUEAPI = "blueapi"
    IN_MEMORY = "in_memory"


class AllowedPlan(BaseModel):
    """A Bluesky plan that steps may have carried out, and how many seconds it may take."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    name: BlueskyPlanName
    timeout: Annotated[float, Field(gt=0, le=30 * DAY)] = DAY


def _plan_entry(plan: object) -> object:
    return {"name": plan} if isinstance(plan, str) else plan


class TouchesFile(BaseModel):
    """What the plans of an executor touch, and the addresses of its devices: the file that `touches` names."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    plans: dict[str, PlanTouches] = {}
    devices: dict[str, tuple[str, ...]] = {}

    @classmethod
    def read(cls, path: Path) -> "TouchesFile":
        """Read a file of JSON; `writes` may be a list where nothing is said of values, and an address may stand alone."""
        content = json.loads(path.read_text())
        plans = {
            name: {**told, "writes": _write_entries(told.get("writes", {}))}
            for name, told in content.get("plans", {}).items()
        }
        devices = {name: [told] if isinstance(told, str) else told for name, told in content.get("devices", {}).items()}
        return cls.model_validate({**content, "plans": plans, "devices": devices})


def _write_entries(writes: object) -> object:
    return dict.fromkeys(writes, ()) if isinstance(writes, list) else writes


class PlanExecutorSettings(BaseModel):
    """One executor: a blueapi or a queueserver, or that of an installed package."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)
    name: ExecutorName
    kind: Annotated[PlanExecutorKind | PluginName, Field(union_mode="left_to_right")]
    address: Annotated[str, Field(min_length=1, max_length=300)]
    credentials_env: Annotated[str, Field(pattern=r"^[A-Z][A-Z0-9_]{0,99}$")] | None = None
    plans: tuple[Annotated[AllowedPlan, BeforeValidator(_plan_entry)], ...] = ()
    session: Annotated[str, Field(min_length=1, max_length=200)] | None = None  # the instrument session of blueapi
    user_group: Annotated[str, Field(min_length=1, max_length=100)] = "primary"  # of queueserver
    touches: Path | None = None
    simulated: bool
    exclusive: bool = False  # whether the service holds the lock of a queueserver
    pause: PausePolicy | None = None  # unset, as the kind of executor does by itself
    open_environment: bool = False  # whether the service opens the environment of a queueserver that is closed

    @property
    def timeouts(self) -> Mapping[str, float]:
        """The seconds that each allowed plan may take."""
        return {plan.name: plan.timeout for plan in self.plans}

    @property
    def declared_touches(self) -> Mapping[str, PlanTouches]:
        """What the file says of each plan."""
        return self.touches_file.plans

    @property
    def device_addresses(self) -> Mapping[str, tuple[str, ...]]:
        """What the file says of each device."""
        return self.touches_file.devices

    @cached_property
    def touches_file(self) -> TouchesFile:
        """The file of touches; an empty one where none is named."""
        return TouchesFile() if self.touches is None else TouchesFile.read(self.touches)


def touches_objection(executor: PlanExecutorSettings) -> str | None:
    """Return why the file of touches of an executor cannot be used, or None."""
    try:
        _ = executor.touches_file
    except (OSError, ValueError, AttributeError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        return (
            f"PLAN_EXECUTORS names {executor.touches} as the `touches` of {executor.name}, and it cannot be read: {reason}."
        )
    return None


def shown_executor(executor: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of an executor without a password that its address may hold."""
    address = str(executor["address"])
    scheme, found, rest = address.partition("://")
    host = rest.rpartition("@")[2] if found else rest
    return {**executor, "address": f"{scheme}://{'***@' if host != rest else ''}{host}" if found else address}
