"""What every publisher promises: a receipt is sent once, whole, and stays known."""

import asyncio
import os
from pathlib import Path
from uuid import UUID, uuid4

import pytest

from baton.application.ports import Publisher, SendingFailedError
from baton.infrastructure.publishing import OutboxPublisher
from tests.support.infrastructure.memory_adapters import MemoryPublisher


@pytest.fixture(params=["outbox", "memory"])
def publisher(request: pytest.FixtureRequest, tmp_path: Path) -> Publisher:
    return OutboxPublisher(tmp_path / "outbox") if request.param == "outbox" else MemoryPublisher()


def delivered_content(publisher: Publisher, receipt_id: UUID, tmp_path: Path) -> bytes:
    if isinstance(publisher, MemoryPublisher):
        return publisher.artifacts[receipt_id]
    return (tmp_path / "outbox" / f"{receipt_id}.json").read_bytes()


async def test_what_is_sent_is_known_to_be_sent(publisher: Publisher, tmp_path: Path) -> None:
    receipt_id = uuid4()
    assert not await publisher.is_sent(receipt_id)
    await publisher.send(receipt_id, b"artifact")
    assert await publisher.is_sent(receipt_id)
    assert not await publisher.is_sent(uuid4())
    assert delivered_content(publisher, receipt_id, tmp_path) == b"artifact"


async def test_a_receipt_that_was_sent_is_recognised(publisher: Publisher, tmp_path: Path) -> None:
    receipt_id = uuid4()
    await publisher.send(receipt_id, b"first")
    await publisher.send(receipt_id, b"second")
    assert delivered_content(publisher, receipt_id, tmp_path) == b"first"


async def test_what_was_sent_can_be_read_again(publisher: Publisher) -> None:
    receipt_id = uuid4()
    assert await publisher.published_artifact(receipt_id) is None
    await publisher.send(receipt_id, b"artifact")
    assert await publisher.published_artifact(receipt_id) == b"artifact"


async def test_of_many_at_once_one_is_sent(publisher: Publisher, tmp_path: Path) -> None:
    receipt_id = uuid4()
    attempts = [b"%d" % number * 10_000 for number in range(10, 20)]
    await asyncio.gather(*(publisher.send(receipt_id, attempt) for attempt in attempts))
    assert delivered_content(publisher, receipt_id, tmp_path) in attempts


async def test_the_outbox_holds_nothing_but_artifacts(tmp_path: Path) -> None:
    receipt_id = uuid4()
    await OutboxPublisher(tmp_path).send(receipt_id, b"artifact")
    assert os.listdir(tmp_path) == [f"{receipt_id}.json"]


async def test_what_the_transport_took_away_stays_known(tmp_path: Path) -> None:
    receipt_id, outbox = uuid4(), OutboxPublisher(tmp_path)
    await outbox.send(receipt_id, b"artifact")
    (tmp_path / "delivered").mkdir()
    (tmp_path / f"{receipt_id}.json").rename(tmp_path / "delivered" / f"{receipt_id}.json")
    assert await outbox.is_sent(receipt_id)
    assert await outbox.published_artifact(receipt_id) == b"artifact"
    await outbox.send(receipt_id, b"again")
    assert not (tmp_path / f"{receipt_id}.json").exists()


async def test_without_an_outbox_nothing_is_published() -> None:
    for asked in (OutboxPublisher(None).is_sent(uuid4()), OutboxPublisher(None).send(uuid4(), b"artifact")):
        with pytest.raises(SendingFailedError, match="set PUBLICATION_OUTBOX"):
            await asked


async def test_an_outbox_that_cannot_be_written_says_so_and_keeps_nothing(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(SendingFailedError, match="PUBLICATION_OUTBOX can be written"):
        await OutboxPublisher(tmp_path / "file").send(uuid4(), b"artifact")
