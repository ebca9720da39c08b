"""What the built-in actions must be told, and their refusals before anything is written."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self, TypeVar

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError, model_validator

from baton.application.conduct.actions import (
    InvalidActionParametersError,
    UnboundedAcquisitionError,
    UnwiredExternalTriggerError,
)
from baton.application.plant import SignalAddress

Form = TypeVar("Form", bound="Parameters")
Word = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=100)]
Seconds = Annotated[float, Field(gt=0)]


class Parameters(BaseModel):
    """The parameters of an action; an unknown one is refused, and so is a number given as text."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)
    detector: SignalAddress
    dwell: Seconds

    @classmethod
    def of(cls, params: Mapping[str, Any]) -> Self:
        """The parameters as given, or a refusal."""
        try:
            return cls.model_validate(dict(params))
        except ValidationError as error:
            faults = (
                f"{'.'.join(map(str, fault['loc'])) or 'together'}: {fault['msg'].removeprefix('Value error, ')}"
                for fault in error.errors(include_url=False, include_input=False)
            )
            raise InvalidActionParametersError(f"The parameters cannot be used: {'; '.join(faults)}.") from error


class Collect(Parameters):
    """An acquisition of so many images of `dwell` seconds, each when it is triggered."""

    trigger_mode: Literal["Internal", "ExternalEdge", "ExternalLevel"]
    polarity: Word | None = None
    source: Word | None = None
    repetitions: Annotated[int, Field(ge=1)] | None = None

    @classmethod
    def of(cls, params: Mapping[str, Any]) -> Self:
        given = super().of(params)
        if given.repetitions is None:
            raise UnboundedAcquisitionError("The acquisition has no end; give repetitions, 1 or more.")
        if given.trigger_mode != "Internal" and given.source is None:
            raise UnwiredExternalTriggerError(
                f"A trigger {given.trigger_mode} comes from outside, and no source is named; give source."
            )
        return given

    @model_validator(mode="after")
    def _wired(self) -> Self:
        if (self.trigger_mode == "ExternalEdge") != (self.polarity is not None):
            raise ValueError("give a polarity with the trigger mode ExternalEdge, and with no other")
        if self.trigger_mode == "Internal" and self.source is not None:
            raise ValueError("a source is for external triggers; leave it out")
        return self


class Discrete(Collect):
    """A collection at each of several points of an axis, some seconds after it got there."""

    axis: SignalAddress
    points: Annotated[list[float], Field(min_length=1)]
    wait: Annotated[float, Field(ge=0)]


class Continuous(Collect):
    """A collection while an axis sweeps from start to stop, at a rate or at its own velocity."""

    axis: SignalAddress
    start: float
    stop: float
    rate: Annotated[float, Field(gt=0)] | None = None

    @model_validator(mode="after")
    def _somewhere(self) -> Self:
        if self.start == self.stop:
            raise ValueError("start and stop are the same; a sweep goes somewhere")
        return self


class Stream(Parameters):
    """A recording to a file: of so many events, or for so many seconds."""

    events: Annotated[int, Field(ge=1)] | None = None
    duration: Seconds | None = None

    @model_validator(mode="after")
    def _one_end(self) -> Self:
        if (self.events is None) == (self.duration is None):
            raise ValueError("give exactly one of events and duration")
        return self
