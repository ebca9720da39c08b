"""Dry runs: a command is decided as always, on ports that reach nothing outside, and shown instead of written."""

from collections.abc import Iterator, Sequence
from typing import Any

import orjson

from baton.application.ports import Batch, Session
from baton.domain.kernel import Call, Command
from baton.domain.ports import Ports
from baton.domain.shared.citation import Citation, MintedIdentifier
from baton.domain.shared.dry_run import WouldRecord
from baton.domain.shared.identifiers import ExternalIdScheme
from baton.domain.shared.refusals import Refusal
from baton.domain.shared.signatures import PublicKey, Signature, SignatureVerdict
from baton.domain.views.hold_everything import Orders

BLANK_SIGNATURE = "00" * 64
MADE_UP = 7  # The version of ids that are made for new things; others follow from what they are of.


class DryRunPorts:
    """The ports of a dry run: no registry issues an identifier, and no signature leaves that could be used."""

    def __init__(self, ports: Ports) -> None:
        self._ports = ports
        self._made: Signature | None = None
        self.made_up = False  # whether something was answered that the ports themselves would have done

        self.identifiers = self.keys = self.orders = self

    def __getattr__(self, name: str) -> Any:
        return getattr(self._ports, name)

    async def mint(self, scheme: ExternalIdScheme, suffix: str, metadata: Citation) -> MintedIdentifier:
        """Return a made-up identifier."""
        self.made_up = True
        return MintedIdentifier(scheme, f"dry-run/{suffix}")

    async def sign(self, secret_ref: str, content: bytes) -> Signature | None:
        """Return a signature without its bytes, or None where the key is not held here."""
        self.made_up = True
        self._made = await self._ports.keys.sign(secret_ref, content)
        return self._made and self._made.model_copy(update={"bytes_hex": BLANK_SIGNATURE})

    async def verify_signature(
        self, public_material_ref: str | None, content: bytes, signature: Signature
    ) -> SignatureVerdict:
        """Return what checking a signature finds; for a blank one, what checking the one that was made does."""
        made = self._made if self._made is not None and signature.bytes_hex == BLANK_SIGNATURE else signature
        return await self._ports.keys.verify_signature(public_material_ref, content, made)

    async def public_key(self, public_material_ref: str | None) -> PublicKey | None:
        """Return the key that public material stands for."""
        return await self._ports.keys.public_key(public_material_ref)

    async def execute_each(self, call: Call, orders: Orders, dry_run: bool) -> Sequence[Refusal | None]:
        """Return the refusals that commands would get."""
        self.made_up = True
        return await self._ports.orders.execute_each(call, orders, True)


async def refuse_rivals(session: Session, batch: Batch) -> None:
    """Refuse what could not be written: a key that a stream holds, or a row that exists."""
    for claim, _ in batch.claims:
        if await session.holders(claim.kind, [claim.key]):
            raise claim.rival
    for put in batch.puts:
        if put.rival is not None:
            key = {name: getattr(put.record, name) for name in put.record.key}
            if await session.records(type(put.record), key):
                raise put.rival


def would_record(batch: Batch, command: Command, *, texts: bool) -> Iterator[WouldRecord]:
    """Yield the events of a batch; where the caller may not read free texts, only those that came with the command."""
    own = frozenset(texts_in(command.model_dump(mode="json")))
    created = {one.stream_id for one in batch.appends if one.after == 0}
    made_up = {id for id in created if id.version == MADE_UP and str(id) not in own}
    for append in batch.appends:
        id, kind = append.stream_id, append.stream_type
        for _, event in append.events:
            payload = orjson.loads(event.payload())
            shown = payload if texts else keep_texts(event.without_texts(payload), payload, own)
            name = type(event).__name__
            yield WouldRecord(stream=kind, stream_id=id, event_type=name, payload=shown, ids_are_examples=id in made_up)


def texts_in(value: object) -> Iterator[str]:
    """Yield every text in plain data."""
    match value:
        case str():
            yield value
        case dict():
            for part in value.values():
                yield from texts_in(part)
        case list():
            for part in value:
                yield from texts_in(part)


def keep_texts(hidden: object, full: object, own: frozenset[str]) -> Any:
    """Return data whose free texts are null, with those put back that the caller sent."""
    match hidden, full:
        case None, str() if full in own:
            return full
        case dict(), dict():
            return {name: keep_texts(part, full.get(name), own) for name, part in hidden.items()}
        case list(), list() if len(hidden) == len(full):
            return [keep_texts(one, other, own) for one, other in zip(hidden, full, strict=True)]
        case _:
            return hidden
