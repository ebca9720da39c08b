"""How values travel through Temporal: as JSON by their pydantic form, and never as much of it as a history must not hold."""

from collections.abc import Sequence
from typing import Any

from temporalio.api.common.v1 import Payload
from temporalio.api.failure.v1 import Failure
from temporalio.contrib.pydantic import PydanticPayloadConverter
from temporalio.converter import DataConverter, DefaultFailureConverter, PayloadConverter
from temporalio.exceptions import FailureError

LIMIT = 32 * 1024
"""Bytes that one value may have, on its way in or out."""


class PayloadTooLargeError(Exception):
    """A value does not belong into a history: it is too large to be kept there and read again at every replay."""

    def __init__(self, what: str, size: int) -> None:
        super().__init__(
            f"{what} has {size:,} bytes, and no workflow or activity is given or answers more than {LIMIT:,}; "
            "keep it in the database and pass its id."
        )


class BoundedPayloadConverter(PydanticPayloadConverter):
    """Every payload passes here, both ways and on both sides, as the bytes that it is."""

    def to_payloads(self, values: Sequence[Any]) -> list[Payload]:
        payloads = super().to_payloads(values)
        for number, (value, payload) in enumerate(zip(values, payloads, strict=True), start=1):
            if len(payload.data) > LIMIT:
                raise PayloadTooLargeError(named(type(value), number, len(values)), len(payload.data))
        return payloads

    def from_payloads(self, payloads: Sequence[Payload], type_hints: list[type] | None = None) -> list[Any]:
        for number, payload in enumerate(payloads, start=1):
            if len(payload.data) > LIMIT:
                kind = type_hints[number - 1] if type_hints else None
                raise PayloadTooLargeError(named(kind, number, len(payloads)), len(payload.data))
        return super().from_payloads(payloads, type_hints)


def named(kind: Any, number: int, count: int) -> str:
    """What a value is called that has no name of its own."""
    place = f" (value {number} of {count})" if count > 1 else ""
    return f"A {getattr(kind, '__name__', 'value')}{place}"


class DiscreetFailureConverter(DefaultFailureConverter):
    """Of an error that is not made for the engine only its class is told: what it says may quote people's input."""

    def to_failure(self, exception: BaseException, payload_converter: PayloadConverter, failure: Failure) -> None:
        super().to_failure(exception, payload_converter, failure)
        if not isinstance(exception, FailureError | PayloadTooLargeError):
            failure.message = type(exception).__name__


data_converter = DataConverter(
    payload_converter_class=BoundedPayloadConverter, failure_converter_class=DiscreetFailureConverter
)
