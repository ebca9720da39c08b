"""Data conversion for Temporal: values as JSON by pydantic, refused above a size that histories must not hold."""

from collections.abc import Sequence
from itertools import zip_longest
from typing import Any

from temporalio.api.common.v1 import Payload
from temporalio.api.failure.v1 import Failure
from temporalio.contrib.pydantic import PydanticPayloadConverter
from temporalio.converter import DataConverter, DefaultFailureConverter, PayloadConverter
from temporalio.exceptions import FailureError

LIMIT = 32 * 1024  # bytes that one value may have, in either direction


class PayloadTooLargeError(Exception):
    """A value is too large to be kept in a history and read again at every replay."""

    def __init__(self, what: str, size: int) -> None:
        super().__init__(
            f"{what} has {size:,} bytes, and no workflow or activity is given or answers more than {LIMIT:,}; "
            "keep it in the database and pass its id."
        )


class BoundedPayloadConverter(PydanticPayloadConverter):
    """Checks the size of every payload, in both directions, in clients and workers."""

    def to_payloads(self, values: Sequence[Any]) -> list[Payload]:
        payloads = super().to_payloads(values)
        check_sizes(payloads, [type(value) for value in values])
        return payloads

    def from_payloads(self, payloads: Sequence[Payload], type_hints: list[type] | None = None) -> list[Any]:
        check_sizes(payloads, type_hints or [])
        return super().from_payloads(payloads, type_hints)


def check_sizes(payloads: Sequence[Payload], types: Sequence[type]) -> None:
    """Refuse a payload that is too large, naming its type and its place among several."""
    for number, (payload, kind) in enumerate(zip_longest(payloads, types[: len(payloads)]), start=1):
        if len(payload.data) > LIMIT:
            place = f" (value {number} of {len(payloads)})" if len(payloads) > 1 else ""
            raise PayloadTooLargeError(f"A {getattr(kind, '__name__', 'value')}{place}", len(payload.data))


class DiscreetFailureConverter(DefaultFailureConverter):
    """Keeps only the class of an error that is not made for the engine: its message may quote people's input."""

    def to_failure(self, exception: BaseException, payload_converter: PayloadConverter, failure: Failure) -> None:
        super().to_failure(exception, payload_converter, failure)
        if not isinstance(exception, FailureError | PayloadTooLargeError):
            failure.message = type(exception).__name__


data_converter = DataConverter(
    payload_converter_class=BoundedPayloadConverter, failure_converter_class=DiscreetFailureConverter
)
