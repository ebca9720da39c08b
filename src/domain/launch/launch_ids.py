"""The ids of everything that one launch makes: a launch that is repeated derives the same ones."""

from dataclasses import dataclass
from typing import TYPE_CHECKING
from uuid import UUID

from baton.domain.shared.canonical import derived_uuid7


class LaunchIds:
    """The ids of a run, a conduct and procedures, each derived from the launch's own id."""

    if TYPE_CHECKING:

        @property
        def id(self) -> UUID:
            """The id of the launch, which a subclass says."""

    def id_for(self, name: str) -> UUID:
        """Return the id of something that the launch makes."""
        return derived_uuid7(self.id.int >> 80, str(self.id), name)

    @property
    def run_id(self) -> UUID:
        return self.id_for("run")

    @property
    def conduct_id(self) -> UUID:
        return self.id_for("conduct")

    def procedure_id(self, index: int = 0) -> UUID:
        """Return the id of a procedure; those of several are in their order."""
        return derived_uuid7((self.id.int >> 80) + index, str(self.id), f"procedure {index}")

    def procedure_ids(self, count: int) -> tuple[UUID, ...]:
        """Return the ids of so many procedures, in their order."""
        return tuple(self.procedure_id(index) for index in range(count))

    def former_procedure_ids(self, count: int) -> tuple[UUID, ...]:
        """Return the ids that earlier releases gave to so many procedures, which were in no order."""
        return tuple(self.id_for(f"procedure {index}") for index in range(count))


@dataclass(frozen=True)
class OwnLaunchIds(LaunchIds):
    """The ids of what the launch with this id makes."""

    id: UUID
