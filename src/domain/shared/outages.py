"""Planned outages: when supplies are announced to be gone. They are forecasts, and close no gate."""

from datetime import datetime
from typing import Annotated, Self

from pydantic import Field, model_validator

from baton.domain.kernel import Value
from baton.domain.shared.times import Instant


class PlannedOutage(Value):
    """An announced outage of every supply of a kind, from its begin until just before its end."""

    kind: Annotated[str, Field(min_length=1, max_length=100)]
    starts_at: Instant
    ends_at: Instant

    @model_validator(mode="after")
    def _ends_later(self) -> Self:
        if self.ends_at <= self.starts_at:
            raise ValueError("an outage ends after it has begun")
        return self

    def covers(self, kind: str, at: datetime) -> bool:
        """Return whether supplies of this kind are announced to be gone at this moment."""
        return kind == self.kind and self.starts_at <= at < self.ends_at
