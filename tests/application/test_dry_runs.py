"""What a dry run keeps to itself: texts of others, and signatures that could be used."""

from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any
from uuid import UUID, uuid4

from baton.application.caller import Caller
from baton.application.dry_runs import DryRunPorts, would_record
from baton.application.ports import Batch
from baton.domain.run.run import RunAdjusted
from baton.domain.shared.identifiers import ExternalIdScheme
from baton.domain.shared.signatures import Signature, SignatureVerdict
from baton.domain.start.run_start import AdjustRun
from baton.infrastructure.wall_clock import new_id
from tests.support.tables import for_each


def batch_of(event: RunAdjusted) -> Batch:
    batch = Batch(Caller.system(uuid4()).call(datetime.now(UTC), uuid4()), "AdjustRun")
    batch.add([event], uuid4(), lambda name, id: 1, new_id)
    return batch


@for_each(
    ("sent", "texts", "shown"),
    [("beam dump", False, "beam dump"), ("something else", False, None), ("something else", True, "beam dump")],
)
def test_only_own_texts_are_shown_to_those_who_may_not_read_others(sent: str, texts: bool, shown: str | None) -> None:
    facts = {"parameters_patch": {}, "effective_parameters": {}, "parameters_schema_revision": 1, "adjusted_by": uuid4()}
    batch = batch_of(RunAdjusted(reason="beam dump", decided_by_decision_id=None, **facts))
    (event,) = would_record(batch, AdjustRun(parameters_patch={}, reason=sent), texts=texts)
    assert (event.event_type, event.payload["reason"]) == ("RunAdjusted", shown)


class SigningPorts:
    """Ports that hold a key."""

    made = Signature(kid="k1", bytes_hex="ab" * 64)

    async def sign(self, secret_ref: str, content: bytes) -> Signature | None:
        return self.made if secret_ref == "here" else None

    async def verify_signature(self, ref: str | None, content: bytes, signature: Signature) -> SignatureVerdict:
        return SignatureVerdict.VALID if signature == self.made else SignatureVerdict.FORGED


async def test_no_usable_signature_leaves_and_it_is_judged_as_the_real_one() -> None:
    held: Any = SimpleNamespace(keys=SigningPorts())
    ports = DryRunPorts(held)
    shown = await ports.sign("here", b"pointer")
    assert shown is not None
    assert (shown.kid, int(shown.bytes_hex, 16)) == ("k1", 0)
    assert await ports.verify_signature(None, b"pointer", shown) is SignatureVerdict.VALID
    assert (
        await ports.verify_signature(None, b"pointer", Signature(kid="k1", bytes_hex="cd" * 64)) is SignatureVerdict.FORGED
    )
    assert await ports.sign("elsewhere", b"pointer") is None


async def test_no_registry_is_asked_for_an_identifier() -> None:
    nothing: Any = object()
    citation: Any = None
    minted = await DryRunPorts(nothing).mint(ExternalIdScheme.DOI, str(UUID(int=7)), citation)
    assert minted.value == f"dry-run/{UUID(int=7)}"
