"""What a registry publishes of a thing beside its persistent identifier, in the terms of DataCite's metadata 4.6."""

from datetime import date
from typing import Literal

from baton.domain.kernel import Value


class CitedParty(Value):
    """An institution that made or holds the thing."""

    name: str
    identifier: str | None = None
    identifier_type: str | None = None


class CitedIdentifier(Value):
    """Another identifier, of the thing itself or of one that it is related to."""

    identifier: str
    identifier_type: str


class CitedRelation(CitedIdentifier):
    """The identifier of a related thing, and how the two are related."""

    relation_type: str


class CitedDate(Value):
    """When something became of the thing."""

    type: Literal["Available", "Withdrawn"]
    date: date


class Citation(Value):
    """The published metadata of one identifier; `landing_page` is where the identifier leads."""

    landing_page: str
    resource_type: Literal["Instrument", "Dataset"]
    title: str
    publisher: str
    publication_year: int
    creators: tuple[CitedParty, ...] = ()
    hosts: tuple[CitedParty, ...] = ()
    subjects: tuple[str, ...] = ()
    dates: tuple[CitedDate, ...] = ()
    related_identifiers: tuple[CitedRelation, ...] = ()
    alternate_identifiers: tuple[CitedIdentifier, ...] = ()
