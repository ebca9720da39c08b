"""What a peer may read of what was published to it: as long as its permit is in force, and only if it may read."""

from dataclasses import replace
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest

from baton.domain.access.actor import ActorKind, RegisterActor
from baton.domain.facility.facility import Facility
from baton.domain.federation.permit import PermitReceiptRecorded, RevokePermit, SuspendPermit
from baton.domain.federation.publication import CalibrationPublication, PublicationStatus
from baton.domain.federation.published_artifact import GetPublishedArtifact, ListPublishedArtifacts
from baton.domain.kernel import Document, Query
from baton.domain.shared.listing import Order
from baton.domain.shared.refusals import InvalidCursorError
from tests.support.domain.calibrations import publishable_revision, publishing_world
from tests.support.domain.peers import OUTBOUND, permit
from tests.support.domain.world import World, expect_refusal, new_id


@pytest.fixture
def world() -> World:
    world = publishing_world()
    world.ports["published_artifact"] = lambda receipt_id: b"artifact"
    return world


def publish(world: World) -> CalibrationPublication:
    """A revision that was published to a peer."""
    id, asked = publishable_revision(world, status="Verified")
    world.when(asked, on=id)
    [row] = [one for one in world.records.values() if isinstance(one, CalibrationPublication)]
    published = replace(row, status=PublicationStatus.PUBLISHED)
    world.records[CalibrationPublication, row.receipt_id] = published
    world.given(row.permit_id, receipt(row.receipt_id, world))
    return published


def receipt(receipt_id: UUID, world: World, **fields: Any) -> PermitReceiptRecorded:
    values = {"content_hash": "ab" * 32, "home_stream_type": "Calibration", "home_stream_id": new_id()}
    later = {"home_artifact_id": new_id(), "recorded_at": world.now, **fields}
    return PermitReceiptRecorded(receipt_id=receipt_id, **values, **later)


def account(world: World, of: str | None, kind: str = "service_account") -> UUID:
    """An account of the facility with this code, or of none."""
    id = world.create(RegisterActor(name="Exchange", kind=ActorKind(kind)))
    if of is not None:
        world.ports["deployment"].peer_accounts[id] = of
    return id


def ask_as(world: World, principal_id: UUID, query: Query, on: UUID | None = None) -> Any:
    """Ask as somebody else."""
    asking, world.principal_id = world.principal_id, principal_id
    try:
        return world.ask(query, on=on)
    finally:
        world.principal_id = asking


@pytest.mark.parametrize("kind", ["service_account", "human"])
def test_an_account_of_a_peer_reads_what_was_published_to_its_facility_alone(world: World, kind: str) -> None:
    published = publish(world)
    code = world.state(Facility, published.peer_facility_id).code
    own, foreign = account(world, code, kind), account(world, "elsewhere", kind)
    read, listed = GetPublishedArtifact(receipt_id=published.receipt_id), ListPublishedArtifacts()
    assert ask_as(world, own, read) == Document("application/json", b"artifact")
    assert len(ask_as(world, own, listed, published.peer_facility_id).items) == 1
    with expect_refusal("PublishedArtifactNotFoundError"):
        ask_as(world, foreign, read)
    with expect_refusal("PeerAccountError", "other_facility"):
        ask_as(world, foreign, listed, published.peer_facility_id)


def test_a_service_account_of_no_facility_reads_nothing(world: World) -> None:
    published = publish(world)
    stray, person = account(world, None), account(world, None, "human")
    listed = ListPublishedArtifacts()
    for query, on in ((GetPublishedArtifact(receipt_id=published.receipt_id), None), (listed, published.peer_facility_id)):
        with expect_refusal("PeerAccountError", "not_bound"):
            ask_as(world, stray, query, on)
        ask_as(world, person, query, on)


def test_a_peer_reads_what_was_published_to_it(world: World) -> None:
    published = publish(world)
    assert world.ask(GetPublishedArtifact(receipt_id=published.receipt_id)) == Document("application/json", b"artifact")
    [item] = world.ask(ListPublishedArtifacts(), on=published.peer_facility_id).items
    assert item.receipt_id == published.receipt_id
    assert (item.content_hash, item.artifact_kind) == ("ab" * 32, "CalibrationRevision")


def test_what_is_not_published_or_not_kept_any_more_is_not_found(world: World) -> None:
    with expect_refusal("PublishedArtifactNotFoundError"):
        world.ask(GetPublishedArtifact(receipt_id=new_id()))
    published = publish(world)
    world.records[CalibrationPublication, published.receipt_id] = replace(published, status=PublicationStatus.SENDING)
    with expect_refusal("PublishedArtifactNotFoundError"):
        world.ask(GetPublishedArtifact(receipt_id=published.receipt_id))
    world.records[CalibrationPublication, published.receipt_id] = published
    world.ports["published_artifact"] = lambda receipt_id: None
    with expect_refusal("PublishedArtifactNotFoundError"):
        world.ask(GetPublishedArtifact(receipt_id=published.receipt_id))


@pytest.mark.parametrize("end", [SuspendPermit(), RevokePermit(), None])
def test_a_permit_that_is_not_in_force_closes_the_door(world: World, end: Any) -> None:
    published = publish(world)
    if end is None:
        world.now += timedelta(days=400)
    else:
        world.when(end, on=published.permit_id)
    with expect_refusal("OutboundPermitNotActiveError", "no_permit_in_force"):
        world.ask(GetPublishedArtifact(receipt_id=published.receipt_id))
    with expect_refusal("OutboundPermitNotActiveError"):
        world.ask(ListPublishedArtifacts(), on=published.peer_facility_id)


def test_a_peer_that_may_only_list_does_not_read(world: World) -> None:
    published = publish(world)
    terms = {**OUTBOUND, "read_scope": "ListMetadataOnly"}
    listed_only = permit(world, published.peer_facility_id, audience="other.example", terms=terms)
    row = replace(published, permit_id=listed_only)
    world.records[CalibrationPublication, published.receipt_id] = row
    with expect_refusal("OutboundPermitNotActiveError", "metadata_only"):
        world.ask(GetPublishedArtifact(receipt_id=published.receipt_id))


def test_a_list_goes_page_by_page_in_either_order(world: World) -> None:
    published = publish(world)
    for second in range(1, 7):
        at = world.now + timedelta(seconds=second // 2)
        world.given(published.permit_id, receipt(new_id(), world, recorded_at=at))
    everything = [one.receipt_id for one in world.ask(ListPublishedArtifacts(), on=published.peer_facility_id).items]
    assert len(set(everything)) == 7
    for order in Order:
        paged, cursor = [], None
        while True:
            page = world.ask(ListPublishedArtifacts(limit=2, cursor=cursor, order=order), on=published.peer_facility_id)
            paged += [one.receipt_id for one in page.items]
            if (cursor := page.next_cursor) is None:
                break
        assert paged == (everything if order is Order.ASC else everything[::-1])
    first = world.ask(ListPublishedArtifacts(limit=2), on=published.peer_facility_id)
    with pytest.raises(InvalidCursorError):
        world.ask(ListPublishedArtifacts(cursor=first.next_cursor, order=Order.DESC), on=published.peer_facility_id)
