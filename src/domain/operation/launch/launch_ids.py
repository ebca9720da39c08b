"""The ids of everything that one launch makes: a launch that is repeated derives the same ones."""

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
        return self.id_for(f"procedure {index}")
