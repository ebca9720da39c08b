"""Tables of projections, derived from their declarations, and the fingerprints by which a change rebuilds them. Other
columns make a new table; other code of the domain (its bytecode and fields, as far as a row depends on it) only has the rows
rebuilt."""

import functools
import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import fields, is_dataclass
from datetime import datetime
from enum import Enum
from types import CodeType, FunctionType, MappingProxyType, MethodType, ModuleType, UnionType
from typing import TYPE_CHECKING, Any, Union, get_args, get_origin
from uuid import UUID

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from baton.application.queries import PROJECTIONS
from baton.domain.contexts import REGISTRY
from baton.domain.kernel import Aggregate
from baton.domain.registry import Projection
from baton.domain.shared.listing import ListQuery, Summary, plural_of
from baton.infrastructure.postgres.pool import RUNTIME_ROLE

if TYPE_CHECKING:
    import sqlalchemy

SCALARS = {UUID: "uuid", str: "text", datetime: "timestamptz", bool: "boolean", int: "bigint", float: "double precision"}
DECLARE = """INSERT INTO projections VALUES (%s, %s, CASE WHEN %s THEN clock_timestamp() END)
ON CONFLICT (relation) DO UPDATE SET definition = excluded.definition, built_at = excluded.built_at"""


def column_type(annotation: Any) -> str:
    if hasattr(annotation, "__metadata__"):
        return column_type(get_args(annotation)[0])
    if get_origin(annotation) in (Union, UnionType):
        return column_type(next(part for part in get_args(annotation) if part is not type(None)))
    if isinstance(annotation, type) and issubclass(annotation, Enum):
        return "text"
    if get_origin(annotation) in (frozenset, tuple) and (element := column_type(get_args(annotation)[0])) != "jsonb":
        return f"{element}[]"
    return SCALARS.get(annotation, "jsonb")


def table_statements(summary: type[Summary], name: str) -> list[str]:
    """Return the statements that create a projection's table, the indexes its list needs, and its grant."""
    columns = {column: column_type(info.rebuild_annotation()) for column, info in summary.model_fields.items()}
    id_column = next(iter(columns))
    lines = ", ".join(f"{column} {sql_type}" for column, sql_type in columns.items())
    statements = [
        f"CREATE TABLE {name} ({lines}, stream_version integer NOT NULL, PRIMARY KEY ({id_column}))",
        f"CREATE INDEX {name}_order ON {name} ({summary.time}, {id_column})",
    ]
    for column in filtered_columns(summary):
        contained = columns[column].endswith("[]") or columns[column] == "jsonb"
        keys = f"USING gin ({column})" if contained else f"({column}, {summary.time}, {id_column})"
        statements.append(f"CREATE INDEX {name}_{column} ON {name} {keys}")
    return [*statements, f"GRANT SELECT, INSERT, UPDATE, DELETE ON {name} TO {RUNTIME_ROLE}"]


def filtered_columns(summary: type[Summary]) -> list[str]:
    queries = [one.input for one in REGISTRY if issubclass(one.input, ListQuery) and one.input.summary is summary]
    wanted = {query.column_of(name) for query in queries for name in (*query.model_fields, *query.indexed)}
    _, *columns = summary.model_fields
    return [column for column in columns if column in wanted or any(plural_of(name) == column for name in wanted)]


def definitions() -> dict[str, str]:
    """Return, by relation, the fingerprint of each projection's table and, after a space, of the code of its rows."""
    codes = code_fingerprints(REGISTRY.projections)
    tables = {relation: table_statements(one.summary, relation) for relation, one in REGISTRY.projections.items()}
    hashes = {relation: hashlib.sha256("\n".join(one).encode()).hexdigest() for relation, one in tables.items()}
    return {relation: f"{hashes[relation]} {codes[relation]}" for relation in tables}


def has_current_projections(known: Mapping[str, str]) -> bool:
    return definitions().items() <= known.items()


def ensure_projections(connection: "sqlalchemy.Connection") -> None:
    """Create tables that are missing or have other columns; mark those for rebuilding whose code has changed."""
    known = {row.relation: row.definition for row in connection.exec_driver_sql("SELECT * FROM projections")}
    empty = connection.exec_driver_sql("SELECT NOT EXISTS (SELECT FROM events)").scalar()
    for relation, definition in definitions().items():
        if known.get(relation) == definition:
            continue
        if known.get(relation, "").partition(" ")[0] != definition.partition(" ")[0]:
            connection.exec_driver_sql(f"DROP TABLE IF EXISTS {relation}")
            for statement in table_statements(REGISTRY.projections[relation].summary, relation):
                connection.exec_driver_sql(statement)
        connection.exec_driver_sql(DECLARE, (relation, definition, empty))
    connection.exec_driver_sql("INSERT INTO bookmarks VALUES (%s, '0', 0) ON CONFLICT DO NOTHING", (PROJECTIONS,))


DOMAIN = "baton.domain"
PLAIN = frozenset({str, bytes, bool, int, float, complex, type(None)})
VALUE_MODULES = frozenset({"uuid", "datetime", "decimal", "re", "zoneinfo"})  # values with the same text everywhere


class CodeFingerprints:
    """Digests of everything that functions and classes can reach in the domain; each is described once."""

    def __init__(self) -> None:
        self._described: dict[int, tuple[str, list[Any]]] = {}

    def digest(self, *roots: Any) -> str:
        reached: dict[int, str] = {}
        waiting = list(roots)
        while waiting:
            item = waiting.pop()
            if id(item) not in reached:
                reached[id(item)], further = self._describe(item)
                waiting += further
        return hashlib.sha256("\n".join(sorted(reached.values())).encode()).hexdigest()

    def _describe(self, item: Any) -> tuple[str, list[Any]]:
        if id(item) not in self._described:
            description = Description()
            text = description.of_class(item) if isinstance(item, type) else description.of_function(item)
            self._described[id(item)] = text, description.named
        return self._described[id(item)]


class Description:
    """The text of one function or class, which is the same in every process, and the functions and classes it names."""

    def __init__(self) -> None:
        self.named: list[Any] = []

    def of_function(self, function: FunctionType) -> str:
        names = sorted(set(_global_names(function.__code__)) & function.__globals__.keys())
        used = {name: self._text(self._member(function.__globals__[name], function.__code__)) for name in names}
        enclosed = [self._text(cell.cell_contents) for cell in function.__closure__ or ()]
        defaults = self._text((function.__defaults__, function.__kwdefaults__))
        code = self._code(function.__code__, function.__doc__)
        return f"def {function.__module__}.{function.__qualname__} {code} {used} {enclosed} {defaults}"

    def of_class(self, cls: type) -> str:
        own = {name: value for name, value in vars(cls).items() if name[:2] != "__" or isinstance(value, FunctionType)}
        members = [f"{name}: {self._text(value)}" for name, value in own.items()]
        if issubclass(cls, BaseModel):
            members += [f"{name}: {self._text(field)}" for name, field in cls.model_fields.items()]
        elif is_dataclass(cls):
            members += [self._text((one.name, one.type, one.default, one.default_factory)) for one in fields(cls)]
        return f"class {cls.__module__}.{cls.__qualname__} {self._text(cls.__bases__)} {sorted(members)}"

    def _code(self, code: CodeType, documentation: str | None = None) -> str:
        # A function without documentation has None in its place.
        constants = [self._text(None if one is documentation else one) for one in code.co_consts]
        flow = code.co_code.hex(), code.co_exceptiontable.hex(), code.co_names, code.co_varnames, code.co_freevars
        return f"{flow} {constants}"

    def _member(self, value: Any, code: CodeType) -> Any:
        if isinstance(value, ModuleType) and _in_domain(value.__name__):
            return {name: vars(value)[name] for name in sorted(_global_names(code)) if name in vars(value)}
        return value

    def _text(self, value: Any) -> str:
        if type(value) in PLAIN:
            return repr(value)
        match value:
            case Enum():
                return f"{self._text(type(value))}.{value.name}"
            case CodeType():
                return self._code(value)
            case FunctionType() | type():
                is_generated = isinstance(value, FunctionType) and value.__code__.co_filename.startswith("<")
                if _in_domain(value.__module__) and not is_generated:
                    self.named.append(value)
                return f"{value.__module__}.{value.__qualname__}"
            case staticmethod() | classmethod() | MethodType():
                return self._text(value.__func__)
            case property():
                return self._text((value.fget, value.fset))
            case functools.cached_property():
                return self._text(value.func)
            case functools.partial():
                return self._text((value.func, value.args, value.keywords))
            case tuple() | list():
                return f"[{', '.join(map(self._text, value))}]"
            case set() | frozenset():
                return f"{{{', '.join(sorted(map(self._text, value)))}}}"
            case dict() | MappingProxyType():
                return self._text([*value.items()])
            case FieldInfo():
                return self._text((value.annotation, value.default, value.default_factory, value.metadata, value.alias))
        return self._text_of_object(value)

    def _text_of_object(self, value: Any) -> str:
        if (origin := get_origin(value)) is not None or isinstance(value, UnionType):
            return f"{self._text(origin)}{self._text(get_args(value))}"
        if (wrapped := getattr(value, "__wrapped__", None) or getattr(value, "wrapped", None)) is not None:
            return self._text(wrapped)
        if type(value).__module__ in VALUE_MODULES:
            return repr(value)
        kind = f"{type(value).__module__}.{type(value).__qualname__}"
        if _in_domain(type(value).__module__) and (is_dataclass(value) or isinstance(value, BaseModel)):
            return f"{kind}{self._text(vars(value))}"
        return kind


def _in_domain(module: str | None) -> bool:
    return module is not None and f"{module}.".startswith(f"{DOMAIN}.")


def _global_names(code: CodeType) -> Iterable[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _global_names(constant)


def code_fingerprints(projections: Mapping[str, Projection]) -> dict[str, str]:
    fingerprints = CodeFingerprints()
    return {relation: fingerprints.digest(*_roots(projection)) for relation, projection in projections.items()}


def _roots(projection: Projection) -> list[Any]:
    aggregate = projection.aggregate
    folds = (Aggregate.after, Aggregate.replay, Aggregate.decode, aggregate._begin, aggregate._evolve)
    functions = [getattr(fold, "__func__", fold) for fold in folds if fold is not None]
    return [*functions, aggregate.state, *aggregate.events.values(), projection.summary]
