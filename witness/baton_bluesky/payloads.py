"""Messages of Bluesky's publishers as plain data: nothing that a pickle names is imported or called.

Bluesky publishes pickles unless told otherwise, and a pickle may run anything. This reader knows numbers, texts, lists and
mappings, numpy's scalars, and of numpy's arrays the shape alone; for all else it puts something empty. It needs no numpy.
"""

import io
import json
import pickle
import struct
from collections import OrderedDict
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, NoReturn

MAX_BYTES = 64 * 2**20
FORMATS = dict(zip(["b1", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8"], "?bhiqBHIQefd", strict=True))
"""The formats of numbers by the names of numpy's data types."""


class UnsafePickleError(ValueError):
    """A document is no plain data, or cannot be read."""


class DataType:
    """A numpy data type, of which the kind and the byte order count."""

    def __init__(self, name: str = "", *_: Any) -> None:
        self.name, self.order = str(name).lstrip("<>=|"), "<"

    def __setstate__(self, state: Any) -> None:
        if isinstance(state, tuple) and len(state) > 1 and state[1] in ("<", ">"):
            self.order = state[1]


class ArrayShape:
    """A numpy array, of which the shape is kept."""

    def __init__(self) -> None:
        self.shape: tuple[int, ...] = ()

    def __setstate__(self, state: Any) -> None:
        shape = state[1] if isinstance(state, tuple) and len(state) > 1 else ()
        self.shape = tuple(size for size in shape if isinstance(size, int)) if isinstance(shape, tuple) else ()


def make_scalar(kind: Any, data: Any = b"") -> Any:
    """Return the number or text that a numpy scalar is."""
    if not isinstance(kind, DataType) or not isinstance(data, bytes):
        return None
    if kind.name.startswith("U"):
        return data.decode("utf-32-le" if kind.order == "<" else "utf-32-be", errors="replace")
    if kind.name not in FORMATS:
        return None
    try:
        (number,) = struct.unpack(kind.order + FORMATS[kind.name], data)
    except struct.error:
        return None
    return number


def make_array(*_: Any) -> ArrayShape:
    """Return an array whose state follows."""
    return ArrayShape()


def make_array_of_buffer(_buffer: Any = None, _kind: Any = None, shape: Any = (), *_: Any) -> ArrayShape:
    """Return the array of a buffer, which is how numpy pickles by protocol 5."""
    array = ArrayShape()
    array.__setstate__((None, shape))
    return array


class Unknown:
    """Stands for what is no plain data, and takes whatever a pickle does to it."""

    def __new__(cls, *_: Any, **__: Any) -> "Unknown":
        return object.__new__(cls)

    def __init__(self, *_: Any, **__: Any) -> None:
        """Keep nothing."""

    def __setstate__(self, state: Any) -> None:
        """Keep nothing."""

    def __setitem__(self, key: Any, value: Any) -> None:
        """Keep nothing."""

    def append(self, value: Any) -> None:
        """Keep nothing."""

    extend = add = update = append


KNOWN: Mapping[tuple[str, str], Callable[..., Any]] = {
    ("collections", "OrderedDict"): OrderedDict,
    ("datetime", "datetime"): datetime,
    **{
        (f"{module}.multiarray", name): made
        for module in ("numpy.core", "numpy._core")
        for name, made in (("scalar", make_scalar), ("_reconstruct", make_array))
    },
    **{(f"{module}.numeric", "_frombuffer"): make_array_of_buffer for module in ("numpy.core", "numpy._core")},
    ("numpy", "dtype"): DataType,
    ("_codecs", "encode"): lambda text, encoding="latin1": str(text).encode("latin1"),
}


class PlainUnpickler(pickle.Unpickler):
    """Reads plain data; no name is looked up anywhere."""

    def find_class(self, module: str, name: str) -> Any:
        """Return what stands for a name; none is imported."""
        return KNOWN.get((module, name), Unknown)

    def persistent_load(self, pid: Any) -> NoReturn:
        """Refuse references to what is elsewhere."""
        raise UnsafePickleError("A document refers to something elsewhere.")


def load_plain(data: bytes) -> Any:
    """Return the plain data of a pickle."""
    if len(data) > MAX_BYTES:
        raise UnsafePickleError(f"A document has {len(data):,} bytes, and {MAX_BYTES:,} are read.")
    try:
        return PlainUnpickler(io.BytesIO(data)).load()
    except UnsafePickleError:
        raise
    except Exception as error:  # a broken pickle raises anything
        raise UnsafePickleError(f"A document cannot be read: {type(error).__name__}.") from error


def read_payload(payload: bytes) -> Any:
    """Return what a message holds, which is JSON, a pickle or msgpack; raise ValueError where it is none of them."""
    if len(payload) > MAX_BYTES:
        raise UnsafePickleError(f"A document has {len(payload):,} bytes, and {MAX_BYTES:,} are read.")
    if payload[:1] in (b"{", b"["):
        return json.loads(payload)
    if payload[:1] in (b"\x80", b"(", b"c", b"}", b"]") and payload[-1:] == b".":
        return load_plain(payload)
    try:
        import msgpack

        return msgpack.unpackb(payload, object_hook=plain_of_numpy, strict_map_key=False)
    except Exception as error:  # a broken message raises anything
        raise UnsafePickleError(f"A document cannot be read: {type(error).__name__}.") from error


def plain_of_numpy(mapping: dict[Any, Any]) -> Any:
    """Return the number or the shape that msgpack-numpy wrote as a mapping."""
    if b"nd" not in mapping and "nd" not in mapping:
        return mapping
    written = {name.decode() if isinstance(name, bytes) else name: value for name, value in mapping.items()}
    if not written["nd"]:
        kind = DataType(text_of(written.get("type", "")))
        kind.order = ">" if text_of(written.get("type", "")).startswith(">") else "<"
        return make_scalar(kind, written.get("data", b""))
    array = ArrayShape()
    array.__setstate__((None, tuple(written.get("shape", ()))))
    return array


def text_of(value: Any) -> str:
    """Return a text that may have come as bytes."""
    return value.decode(errors="replace") if isinstance(value, bytes) else str(value)
