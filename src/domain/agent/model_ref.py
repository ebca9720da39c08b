"""Which model is meant: the reference that catalog entries and agents share."""

from typing import Annotated

from baton.domain.kernel import Value
from baton.domain.shared.refusals import Invalid
from baton.domain.shared.text import Text

DETERMINISTIC = "deterministic"
"""The provider of agents that follow rules and ask no model."""
SETTING = "setting"
"""The provider of a model that a setting of the deployment names; it is looked up at each call."""


class InvalidModelRefError(Invalid, context="agent"):
    """A reference to a model names a provider and a model, and a snapshot where one is pinned; none of them is blank."""


Provider = Annotated[str, Text(100, InvalidModelRefError, "provider")]
ModelName = Annotated[str, Text(200, InvalidModelRefError, "model")]
SnapshotPin = Annotated[str, Text(100, InvalidModelRefError, "snapshot pin")]


class ModelRef(Value):
    """A provider's model; where a snapshot of it is pinned, that one is asked in its stead."""

    provider: Provider
    model: ModelName
    snapshot_pin: SnapshotPin | None = None

    @property
    def asked(self) -> str:
        """The name that the provider is asked for."""
        return self.snapshot_pin or self.model
