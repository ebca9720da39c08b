"""Tables of projections, derived from their declarations, and the fingerprints by which a change rebuilds them. Other
columns make a new table; other code of the domain (as it is written, as far as a row depends on it) only has the rows
rebuilt."""

import hashlib
import re
import sys
from collections.abc import Iterable, Mapping
from datetime import datetime
from enum import Enum
from itertools import pairwise
from types import UnionType
from typing import TYPE_CHECKING, Any, NamedTuple, Union, get_args, get_origin
from uuid import UUID

from baton.application.queries import PROJECTIONS
from baton.domain.contexts import REGISTRY
from baton.domain.kernel import Aggregate, Command, Query
from baton.domain.registry import Operation, Projection, Registry
from baton.domain.shared.listing import ListQuery, Summary, plural_of
from baton.domain.shared.source_text import module_source
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


NAME = re.compile(r"[A-Za-z_]\w*")
DECLARATIONS = (Aggregate, Command, Query, Operation, Registry)  # No row depends on the code of these classes.


class CodePlace(NamedTuple):
    """A definition, by its module and its name there."""

    module: str
    name: str


class CodeFingerprints:
    """Digests of everything in the domain that functions and classes reach by name, as it is written; each is read once."""

    def __init__(self) -> None:
        self._definitions: dict[CodePlace, tuple[str, list[CodePlace]]] = {}

    def digest(self, *roots: object) -> str:
        reached: dict[CodePlace, str] = {}
        waiting = [place for root in roots for place in _places_of(root)]
        while waiting:
            place = waiting.pop()
            if place not in reached:
                if place not in self._definitions:
                    self._definitions[place] = _read(place)
                reached[place], named = self._definitions[place]
                waiting += named
        return hashlib.sha256(repr(sorted(reached.items())).encode()).hexdigest()


def _places_of(item: Any) -> list[CodePlace]:
    """Return where a function or class is written; of a class that is generated, where its bases are."""
    place = CodePlace(item.__module__, item.__qualname__)
    if module_source(place.module).definition(place.name) is not None:
        return [place]
    if not isinstance(item, type):
        raise TypeError(f"{place.module} has no text of {place.name}; write it as a function")
    return [one for base in item.__bases__ if _in_domain(base.__module__) for one in _places_of(base)]


def _read(place: CodePlace) -> tuple[str, list[CodePlace]]:
    """Return the digest of a definition without documentation, and the definitions of the domain that it names."""
    source = module_source(place.module)
    written = source.definition(place.name)
    assert written is not None, place
    lines = [line.rstrip() for line in written.splitlines() if line.strip()]
    text = "\n".join(line for before, line in pairwise(["", *lines]) if not _is_documentation(before, line))
    words = set(NAME.findall(text))
    known = words & (source.definitions.keys() | source.imports.keys())
    named = [one for name in known for one in _definitions_of(place.module, name, words)]
    return hashlib.sha256(text.encode()).hexdigest(), named


def _is_documentation(before: str, line: str) -> bool:
    return line.lstrip().startswith('"""') and (before.endswith(":") or line.startswith('"'))


def _definitions_of(module: str, name: str, beside: Iterable[str]) -> list[CodePlace]:
    """Return the definition that a name in a module leads to; of a module, those of the names beside it."""
    source = module_source(module)
    if name in source.definitions:
        value = vars(sys.modules[module]).get(name)
        is_declaration = isinstance(value, type) and issubclass(value, DECLARATIONS)
        return [] if is_declaration else [CodePlace(module, name)]
    origin, original = source.imports.get(name, ("", ""))
    if not _in_domain(origin):
        return []
    if (imported := f"{origin}.{original}") in sys.modules:
        return [CodePlace(imported, one) for one in beside if one in module_source(imported).definitions]
    return _definitions_of(origin, original, beside)


def _in_domain(module: str) -> bool:
    return f"{module}.".startswith("baton.domain.")


def code_fingerprints(projections: Mapping[str, Projection]) -> dict[str, str]:
    fingerprints = CodeFingerprints()
    return {relation: fingerprints.digest(*_roots(projection)) for relation, projection in projections.items()}


def _roots(projection: Projection) -> list[object]:
    aggregate = projection.aggregate
    folds = (Aggregate.after, Aggregate.replay, Aggregate.decode, aggregate._begin, aggregate._evolve)
    functions = [getattr(fold, "__func__", fold) for fold in folds if fold is not None]
    return [*functions, aggregate.state, *aggregate.events.values(), projection.summary]
