"""Lists: a projection's columns as a function of state, and keyset pages over them. A `ListQuery` names the filters: one
with the name of a column means equality (any of, when repeatable), one whose plural is a set column means membership.
Things that have names are found by them with a `NamedListQuery`."""

import base64
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from typing import Annotated, Any, ClassVar, Generic, Literal, Self
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field, create_model
from typing_extensions import TypeVar

from baton.domain.kernel import Call, CursorText, LogPosition, NamesOnRequest, PageLimit, State
from baton.domain.shared.annotations import marks
from baton.domain.shared.answer_form import AnswerForm
from baton.domain.shared.naming import NAMES
from baton.domain.shared.reads import Reads, Rows
from baton.domain.shared.refusals import InvalidCursorError
from baton.domain.shared.times import Instant


class _Hidden:
    """Marks a column that serves filters only."""


T = TypeVar("T")
Listed = TypeVar("Listed", default=Any)
Hidden = Annotated[T, _Hidden()]  # A column that is stored to filter by and not shown.


class Order(StrEnum):
    ASC = "asc"
    DESC = "desc"


@dataclass(frozen=True)
class Where:
    """One condition on a column; all conditions of a query hold together."""

    column: str
    test: Literal[
        "is",
        "in",
        "not_in",
        "has",
        "has_any",
        "contains",
        "part",
        "from",
        "to",
        "before",
        "after",
        "after_or_null",
        "is_null",
    ]
    value: Any


class Summary(AnswerForm):
    """One row of a relation that can be listed; the first column is its id. In a projection, one stream's row."""

    model_config = ConfigDict(frozen=True)
    relation: ClassVar[str]
    time: ClassVar[str] = "created_at"

    @classmethod
    def of(cls, state: State) -> Self:
        """Return the row of a state: each column is the state's attribute of that name, the first one its id."""
        id_column = next(iter(cls.model_fields))
        return cls(**{name: state.id if name == id_column else getattr(state, name) for name in cls.model_fields})

    @classmethod
    def item_form(cls) -> type[BaseModel]:
        """Return the form of one listed item: every column that is not hidden."""
        columns = {
            name: (info.rebuild_annotation(), Field(description=info.description, json_schema_extra=info.json_schema_extra))
            for name, info in cls.model_fields.items()
            if name not in cls.hidden()
        }
        form: type[BaseModel] = create_model(cls.__name__.replace("Summary", "Item"), __base__=AnswerForm, **columns)  # type: ignore[call-overload]
        return form

    @classmethod
    @cache
    def hidden(cls) -> frozenset[str]:
        """Return the columns that are not shown."""
        return frozenset(name for name, field in cls.model_fields.items() if marks(field, _Hidden))


@dataclass(frozen=True)
class Page(Generic[T]):
    """One page of a list; `next_cursor` is null on the last one."""

    items: tuple[T, ...]
    next_cursor: str | None


class Cursor(AnswerForm):
    """Where a page ended: the order it was read in, and the last item's time and id."""

    model_config = ConfigDict(frozen=True)
    order: Order
    time: Instant
    id: UUID

    def __str__(self) -> str:
        return encode_cursor(self.order, self.time.isoformat(), self.id)

    @classmethod
    def parse(cls, text: str, order: Order) -> Self:
        """Return the cursor in this text; refuse one that is malformed or was handed out for another order."""
        written, time, id = decode_cursor(text, 3)
        try:
            cursor = cls.model_validate({"order": written, "time": time, "id": id})
        except ValueError as error:
            raise malformed_cursor() from error
        if cursor.order is not order:
            detail = f"This cursor belongs to order={cursor.order}; use it with that order."
            raise InvalidCursorError(detail, reason="other_order")
        return cursor


def encode_cursor(*parts: object) -> str:
    """Return the text of a cursor of these parts."""
    return base64.urlsafe_b64encode("|".join(map(str, parts)).encode()).rstrip(b"=").decode()


def decode_cursor(cursor: str, count: int) -> list[str]:
    """Return the parts of a cursor's text."""
    try:
        parts = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True).decode().split("|")
    except ValueError as error:
        raise malformed_cursor() from error
    if len(parts) != count:
        raise malformed_cursor()
    return parts


def malformed_cursor() -> InvalidCursorError:
    """Return the refusal of a cursor that no list handed out."""
    return InvalidCursorError("This cursor is malformed; start again without one.", reason="malformed")


class ListQuery(NamesOnRequest[Page[Listed]]):
    """A keyset list over a projection, and the type of its rows."""

    summary: ClassVar[type[Summary]]
    filters: ClassVar[dict[str, str]] = {}  # Filters whose column has another name.
    indexed: ClassVar[tuple[str, ...]] = ()  # Columns that an own `where` asks about, besides those that filters name.

    limit: PageLimit = 50
    cursor: CursorText | None = None
    order: Order = Order.ASC
    min_position: LogPosition | None = None
    created_from: Instant | None = None
    created_to: Instant | None = None

    @classmethod
    def column_of(cls, name: str) -> str:
        """Return the column that a filter of this name asks about."""
        return cls.filters.get(name, name)

    def where(self) -> Iterator[Where]:
        """Yield the conditions this query sets; fields without a column are left to an own `where`."""
        if self.created_from is not None:
            yield Where(self.summary.time, "from", self.created_from)
        if self.created_to is not None:
            yield Where(self.summary.time, "before", self.created_to)
        columns, common = self.summary.model_fields, ListQuery.model_fields
        for name in type(self).model_fields:
            value = getattr(self, name)
            if name in common or value is None or value == ():
                continue
            column = self.column_of(name)
            if column in columns:
                yield Where(column, "in" if isinstance(value, tuple) else "is", value)
            elif (plural := plural_of(column)) in columns:
                yield Where(plural, "has", value)

    def answer(self, *known: State | Call) -> Reads[Page[Listed]]:
        scope = (where for target in known if isinstance(target, State) for where in self.scope(target))
        page: Page[Any] = yield Rows(self.summary, self, (*scope, *self.where()))
        items = yield from self.present(page.items)
        return Page(tuple(items), page.next_cursor)

    def scope(self, target: Any) -> Iterator[Where]:
        """Yield the conditions that the aggregate named in the path sets: by default, that a row has its id."""
        yield Where(target.aggregate.id_name, "is", target.id)

    def present(self, rows: tuple[Any, ...]) -> Reads[tuple[Listed, ...]]:
        """Return what is shown of these rows; by default every column that is not hidden."""
        return rows
        yield

    @classmethod
    def page_form(cls, item: type[object] | None) -> Any:
        """Return the form of this list's answer."""
        return Page[item or cls.summary.item_form()]  # type: ignore[misc]

    def after(self) -> Cursor | None:
        """Return the cursor this page starts behind."""
        return Cursor.parse(self.cursor, self.order) if self.cursor else None


class NamedListQuery(ListQuery[Listed]):
    """A list of things that people call by a name, each found by its whole name or by a part of it in any case."""

    name: Annotated[str, Field(min_length=1, max_length=200)] | None = None
    q: Annotated[str, Field(min_length=1, max_length=100)] | None = None

    @classmethod
    def name_column(cls) -> str:
        """Return the column that holds what people call a thing."""
        return next(name for name in NAMES if name in cls.summary.model_fields)

    @classmethod
    def column_of(cls, name: str) -> str:
        return cls.name_column() if name == "name" else super().column_of(name)

    def where(self) -> Iterator[Where]:
        yield from super().where()
        if self.q is not None and (column := self.name_column()) in self.summary.model_fields:
            yield Where(column, "part", self.q)


def plural_of(column: str) -> str:
    """Return the set column that a singular filter asks about: `family_id` -> `family_ids`."""
    return f"{column}s"
