"""The enclosure gate: whether every enclosure that some work touches is permitted, and known to be so just now."""

from collections.abc import Collection, Iterable, Mapping
from datetime import datetime, timedelta
from uuid import UUID

from baton.domain.enclosure.enclosure import (
    Enclosure,
    EnclosureContact,
    EnclosureLifecycle,
    EnclosurePermitStatus,
    enclosure_key,
    observation_age,
)
from baton.domain.shared.gates import GateFinding
from baton.domain.shared.reads import Reads, every, records_of

Enclosures = Mapping[UUID, Enclosure]
Contacts = Mapping[UUID, EnclosureContact]


def enclosures_with_contacts(enclosure_ids: Iterable[UUID]) -> Reads[tuple[Enclosures, Contacts]]:
    """Return these enclosures and when each was last observed; what is not on record is left out.

    The contacts come first: whatever is observed between the two reads can then only close the gate, never open it.
    """
    ids = tuple(sorted(enclosure_ids))
    if not ids:
        return {}, {}
    contacts = yield from records_of(EnclosureContact, enclosure_id=ids)
    enclosures = yield from every(Enclosure, ids)
    return enclosures, {contact.enclosure_id: contact for contact in contacts}


def enclosure_finding(
    enclosure_ids: Iterable[UUID],
    enclosures: Enclosures,
    contacts: Contacts,
    now: datetime,
    fresh_within: timedelta,
    monitored: Collection[str] = (),
) -> GateFinding | None:
    """Return the finding on the enclosures that do not permit work; one that is not on record does not either.

    `monitored` are the keys of the names that this deployment's monitor watches.
    """
    ids = sorted(set(enclosure_ids))
    failing = {
        id: why for id in ids if (why := _objection(enclosures.get(id), contacts.get(id), now, fresh_within)) is not None
    }
    if not failing:
        return None
    named = ", ".join(f"{enclosures[id].name if id in enclosures else id} {why}" for id, why in failing.items())
    total = len(failing) == len(ids)
    retired = [id for id in failing if id not in enclosures or enclosures[id].lifecycle is not EnclosureLifecycle.ACTIVE]
    unwatched = [
        enclosures[id].name
        for id in failing
        if id not in retired
        and enclosure_key(enclosures[id]) not in monitored
        and not _is_fresh(contacts.get(id), now, fresh_within)
    ]
    if retired:
        advice = "relocate the assets in one that is not in service"
    elif unwatched:
        advice = (
            f"only an enclosure's monitor reports this, and none is configured for {', '.join(unwatched)}; have an "
            "administrator add it to MONITORED_ENCLOSURES"
        )
    else:
        advice = "have each secured, and its monitor will report it"
    return GateFinding(
        total=total,
        reason="no_enclosure_permitted" if total else "enclosure_not_permitted",
        detail=f"The interlock does not permit work in {'any' if total else 'every'} enclosure: {named}; {advice}.",
        facts={"enclosures": [_facts(id, enclosures.get(id), contacts.get(id), now, monitored) for id in failing]},
    )


def _objection(
    enclosure: Enclosure | None, contact: EnclosureContact | None, now: datetime, fresh_within: timedelta
) -> str | None:
    """Return why an enclosure does not pass; a contact from the future proves as little as an old one."""
    if enclosure is None:
        return "is not on record"
    if enclosure.lifecycle is not EnclosureLifecycle.ACTIVE:
        return f"is {enclosure.lifecycle.value}"
    if enclosure.permit_status is not EnclosurePermitStatus.PERMITTED:
        return f"is {enclosure.permit_status.value}"
    if contact is None:
        return "has no contact on record"
    if not _is_fresh(contact, now, fresh_within):
        age = now - contact.contacted_at
        where = "ago" if age > timedelta() else "ahead of the clock"
        return f"was last observed {abs(age).total_seconds():.0f} s {where}, not within {fresh_within.total_seconds():.0f} s"
    return None


def _is_fresh(contact: EnclosureContact | None, now: datetime, fresh_within: timedelta) -> bool:
    return contact is not None and abs(now - contact.contacted_at) <= fresh_within


def _facts(
    id: UUID, enclosure: Enclosure | None, contact: EnclosureContact | None, now: datetime, monitored: Collection[str]
) -> dict[str, object]:
    return {
        "enclosure_id": str(id),
        "permit_status": enclosure.permit_status.value if enclosure else None,
        "lifecycle": enclosure.lifecycle.value if enclosure else None,
        "observation_age": observation_age(contact, now),
        "monitored": enclosure is not None and enclosure_key(enclosure) in monitored,
    }
