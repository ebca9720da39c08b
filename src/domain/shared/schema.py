"""Declared schemas: what a schema may say (a small closed part of JSON Schema 2020-12, so that schemas can be compared and
joined), whether values satisfy it, and which units it fixes. `None` means not declared, `{}` declared without constraint."""

import json
import math
import re
from collections.abc import Iterator, Mapping
from enum import StrEnum
from functools import cache, lru_cache
from itertools import combinations
from typing import TYPE_CHECKING, Any, NamedTuple

from pydantic_core import SchemaError as CoreSchemaError
from pydantic_core import SchemaValidator, core_schema

from baton.domain.shared.json_schema import map_levels
from baton.domain.shared.refusals import Refusal
from baton.domain.shared.text import shorten

if TYPE_CHECKING:  # loading its vocabularies takes as long as a context of the domain, and few calls declare a schema
    from jsonschema.exceptions import ValidationError
    from jsonschema.protocols import Validator

DIALECT = "https://json-schema.org/draft/2020-12/schema"
CLOSING = frozenset({"additionalProperties", "unevaluatedProperties"})
KEYWORDS = CLOSING | {
    *("$schema", "type", "title", "description", "properties", "required", "enum", "minimum", "maximum", "pattern"),
    *("minLength", "maxLength", "items", "minItems", "maxItems", "unit"),
}
RESERVED = frozenset({"compatible", "backend"})  # Property names that nothing may declare.
MAX_DEPTH = 20  # Levels of a schema, the root being the first.
ELEMENT = "[]"  # The segment that stands for the elements of an array in a property path.

Schema = dict[str, Any]
Path = tuple[str, ...]

VIOLATIONS = {
    "type": ("wrong_type", "must be of type {limit}; correct the value"),
    "enum": ("not_in_enum", "must be one of {limit}; choose one of them"),
    "minimum": ("below_minimum", "must be at least {limit}; correct the value"),
    "maximum": ("above_maximum", "must be at most {limit}; correct the value"),
    "pattern": ("pattern_mismatch", "must match the pattern {limit}; correct the value"),
    "minLength": ("too_short", "must have at least {limit} characters; correct the value"),
    "maxLength": ("too_long", "must have at most {limit} characters; correct the value"),
    "minItems": ("too_few_items", "must have at least {limit} items; correct the value"),
    "maxItems": ("too_many_items", "must have at most {limit} items; correct the value"),
    "required": ("missing_key", "is required; give it too"),
    "additionalProperties": ("undeclared_key", "is not declared; drop it or declare it in the schema"),
    "unevaluatedProperties": ("undeclared_key", "is not declared; drop it or declare it in the schema"),
}  # The reason of a violation of each keyword, and its sentence.


class SchemaViolation(NamedTuple):
    """One way in which values break their schema: where, the reason, and what has to be so, without its subject."""

    place: Path
    reason: str
    sentence: str

    @property
    def path(self) -> str:
        return _at(self.place) or "$"


class UnitSystem(StrEnum):
    """Whose code a unit is given by."""

    UDUNITS = "udunits"
    UCUM = "ucum"
    QUDT = "qudt"
    IEC61360 = "iec61360"


UNIT_SYSTEMS = frozenset(UnitSystem)


def check_declaration(schema: Schema | None, refusal: type[Refusal]) -> None:
    """Refuse a schema that may not be declared; nothing and `{}` may."""
    if not schema:
        return
    if schema.get("$schema") != DIALECT:
        detail = f"The schema must name its dialect; set $schema to {DIALECT}, or declare {{}} for no constraint."
        raise _refusal_at(("$", "$schema"), "wrong_dialect", detail, refusal)
    levels = list(_levels(schema, ("$",), refusal))
    for path, level in levels:
        _check_level(path, level, refusal)
    for path, level in levels:
        if "unit" in level:
            _check_unit((*path, "unit"), level, refusal)
    _check_compiles(schema, refusal)
    for path, level in levels:
        if (why := unmatchable(level.get("pattern", ""))) is not None:
            detail = f"The pattern at {_at(path)} {why}, so that matching it may take for ever; write it without that."
            raise _refusal_at((*path, "pattern"), "pattern_needs_backtracking", detail, refusal)


def check_values(schema: Schema | None, values: Mapping[str, object], refusal: type[Refusal]) -> None:
    """Refuse values that break their schema, at the first violation; no values never do."""
    if not values:
        return
    if schema is None:
        raise _nothing_declared(values, refusal)
    _refuse_non_finite(values, (), refusal)
    _refuse_first_violation(schema, values, refusal)


def check_union(schemas: Mapping[str, Schema | None], values: Mapping[str, object], refusal: type[Refusal]) -> None:
    """Refuse values that break a family's schema; the root is closed once, around the keys of all, unless one is `{}`."""
    if not values:
        return
    declared = {family: schema for family, schema in sorted(schemas.items()) if schema is not None}
    if not declared:
        raise _nothing_declared(values, refusal)
    for one, other in combinations(declared, 2):
        _refuse_clash((one, declared[one]), (other, declared[other]), refusal)
    _refuse_non_finite(values, (), refusal)
    if {} not in declared.values():
        known = {name for schema in declared.values() for name in schema.get("properties", {})}
        if unknown := sorted(values.keys() - known):
            detail = f"{unknown[0]} is declared by no family of this asset; drop it or declare it in a settings schema."
            raise refusal(detail, reason="undeclared_key", facts={"path": unknown[0], "keys": unknown})
    for family, schema in declared.items():
        unclosed = {keyword: value for keyword, value in schema.items() if keyword not in CLOSING}
        _refuse_first_violation(unclosed, values, refusal, family=family)


def declared_units(schema: Schema | None) -> dict[str, tuple[str, str]]:
    """Return the unit of each property that has one: dotted path -> (system, code); `[]` stands for an array's elements."""
    units = ((path, unit_of(level)) for path, level in _properties(schema))
    return {_at(path): unit for path, unit in units if unit is not None}


def changed_units(before: Schema | None, after: Schema | None) -> tuple[str, ...]:
    """Return the properties of both schemas whose unit the second one alters or drops, as dotted paths."""
    later = dict(_properties(after))
    units = ((path, unit) for path, level in _properties(before) if (unit := unit_of(level)) is not None)
    return tuple(sorted(_at(path) for path, unit in units if path in later and unit_of(later[path]) != unit))


def unit_of(level: Schema) -> tuple[str, str] | None:
    """Return the unit of one level of a declared schema, or None."""
    return (level["unit"]["system"], level["unit"]["code"]) if "unit" in level else None


def types_of(level: Schema) -> frozenset[str]:
    """Return the types one level of a declared schema admits; none means any."""
    declared = level.get("type")
    return frozenset(name for name in (declared if isinstance(declared, list) else [declared]) if isinstance(name, str))


def is_closed(level: Schema) -> bool:
    """Return whether one level of a declared schema admits no keys but those it declares."""
    return level.get("additionalProperties", level.get("unevaluatedProperties")) is False


def _levels(schema: Schema, path: Path, refusal: type[Refusal], depth: int = 1) -> Iterator[tuple[Path, Schema]]:
    """Yield every level of a schema under declaration, root first; refuse keywords outside the set on the way."""
    if depth > MAX_DEPTH:
        raise _refusal_at(path, "too_deep", f"The schema nests deeper than {MAX_DEPTH} levels; flatten it.", refusal)
    yield path, schema
    for keyword, value in schema.items():
        if keyword not in KEYWORDS:
            allowed = ", ".join(sorted(KEYWORDS))
            detail = f"The keyword {keyword} at {_at(path)} is outside the allowed set; use only {allowed}."
            raise refusal(detail, reason="forbidden_keyword", facts={"path": _at((*path, keyword)), "keyword": keyword})
        inner = {(*path, keyword): value} if keyword == "items" else {}
        if keyword == "properties":
            if not isinstance(value, dict):
                raise _malformed_keyword((*path, keyword), "an object of schemas", refusal)
            inner = {(*path, keyword, name): level for name, level in value.items()}
        for place, level in inner.items():
            if not isinstance(level, dict):
                raise _malformed_keyword(place, "one schema, as an object", refusal)
            yield from _levels(level, place, refusal, depth + 1)


def _check_level(path: Path, level: Schema, refusal: type[Refusal]) -> None:
    """Refuse a level that is neither open nor closed, or declares a reserved name."""
    for keyword in sorted(CLOSING & level.keys()):
        if not isinstance(level[keyword], bool):
            raise _malformed_keyword((*path, keyword), "true or false", refusal)
    for name in level.get("properties", {}):
        if name in RESERVED:
            detail = f"The property name {name} is reserved; choose another one."
            raise _refusal_at((*path, "properties", name), "reserved_property", detail, refusal)


def _check_unit(path: Path, level: Schema, refusal: type[Refusal]) -> None:
    match level["unit"]:
        case {"system": str() as system, "code": str() as code, **others} if (
            system in UNIT_SYSTEMS
            and code.strip()
            and others.keys() <= {"label"}
            and isinstance(others.get("label", ""), str)
        ):
            if _numeric(level):
                return
            detail = "belongs to no number; put units on numbers and arrays of numbers only."
        case _:
            detail = f"is malformed; give system ({', '.join(UnitSystem)}), code and at most a label."
    raise _refusal_at(path, "malformed_unit", f"The unit at {_at(path)} {detail}", refusal)


def _check_compiles(schema: Schema, refusal: type[Refusal]) -> None:
    from jsonschema import Draft202012Validator, SchemaError

    try:
        json.dumps(schema, allow_nan=False)
        Draft202012Validator.check_schema(schema)
    except SchemaError as error:
        path = ("$", *map(str, error.absolute_path))
        detail = f"The schema does not compile at {_at(path)}: {shorten(error.message)}; correct it."
        raise _refusal_at(path, "does_not_compile", detail, refusal) from error
    except (OverflowError, RecursionError, ValueError) as error:
        detail = f"The schema does not compile: {shorten(str(error))}; correct it."
        raise _refusal_at(("$",), "does_not_compile", detail, refusal) from error


def _refusal_at(path: Path, reason: str, detail: str, refusal: type[Refusal]) -> Refusal:
    return refusal(detail, reason=reason, facts={"path": _at(path)})


def _malformed_keyword(path: Path, form: str, refusal: type[Refusal]) -> Refusal:
    return _refusal_at(path, "malformed_keyword", f"{_at(path)} must be {form}; correct it.", refusal)


def _nothing_declared(values: Mapping[str, object], refusal: type[Refusal]) -> Refusal:
    keys = sorted(values)
    remedy = "declare one ({} for no constraint) or drop these keys"
    detail = f"No schema is declared for {shorten(', '.join(keys))}; {remedy}."
    return refusal(detail, reason="no_schema", facts={"keys": keys})


def _refuse_non_finite(value: object, path: Path, refusal: type[Refusal]) -> None:
    match value:
        case float() if not math.isfinite(value):
            raise _refusal_at(path, "not_finite", f"{_at(path)} is not a finite number; correct the value.", refusal)
        case Mapping():
            for key, item in value.items():
                _refuse_non_finite(item, (*path, key), refusal)
        case list() | tuple():
            for index, item in enumerate(value):
                _refuse_non_finite(item, (*path, str(index)), refusal)


def _refuse_first_violation(schema: Schema, values: Mapping[str, object], refusal: type[Refusal], **facts: str) -> None:
    if (first := next(violations_of(schema, values), None)) is not None:
        raise refusal(f"{first.path} {first.sentence}.", reason=first.reason, facts={"path": first.path, **facts})


def violations_of(schema: Schema, values: Mapping[str, Any]) -> Iterator[SchemaViolation]:
    """Yield everything by which values break their schema, each key that is missing or undeclared by itself."""
    known: set[tuple[Path, str]] = set()  # the keys that are missing are found once for each of them
    for error in _validator(json.dumps(schema, sort_keys=True)).iter_errors(dict(values)):
        level: Any = error.schema
        keyword = str(error.validator)
        reason, saying = VIOLATIONS[keyword]
        if keyword == "pattern" and (why := unmatchable(str(error.validator_value))) is not None:
            reason = "pattern_needs_backtracking"
            saying = f"cannot be judged, since its pattern {why}; declare the schema again without that"
        unit = level.get("unit", {}).get("code", "") if keyword in ("minimum", "maximum") else ""
        limit = f"{json.dumps(error.validator_value, ensure_ascii=False)} {unit}".strip()
        for keys in _offending_keys(error, level) or ((),):
            place = (*map(str, error.absolute_path), *keys)
            if (place, keyword) not in known:
                known.add((place, keyword))
                yield SchemaViolation(place, reason, saying.format(limit=shorten(limit)))


def _offending_keys(error: "ValidationError", level: Schema) -> list[tuple[str]]:
    """Return the keys a violation is about, where some are missing or undeclared."""
    values: Any = error.instance
    if error.validator == "required":
        return [(name,) for name in level["required"] if name not in values]
    if error.validator in CLOSING:
        return [(name,) for name in sorted(values.keys() - level.get("properties", {}).keys())]
    return []


def _refuse_clash(one: tuple[str, Schema], other: tuple[str, Schema], refusal: type[Refusal]) -> None:
    """Refuse two families that mean different things by one key."""
    there = dict(_properties(other[1]))
    for path, level in _properties(one[1]):
        if path not in there:
            continue
        facts = {"key": _at(path), "families": [one[0], other[0]]}
        types, other_types = types_of(level), types_of(there[path])
        if types and other_types and types != other_types:
            reason, difference = "type_clash", "with different types"
        elif unit_of(level) != unit_of(there[path]):
            reason, difference = "unit_clash", "in different units"
        else:
            continue
        detail = f"{one[0]} and {other[0]} declare {facts['key']} {difference}; settle on one in their schemas."
        raise refusal(detail, reason=reason, facts=facts)


@lru_cache(maxsize=1024)
def _validator(text: str) -> "Validator":
    """Return the validator of a schema in its one sorted text form."""
    return _without_backtracking()(_of_one_dialect(json.loads(text)))


@cache
def _without_backtracking() -> "type[Validator]":
    """Return the class of validators that match patterns in time that grows with the text alone."""
    from jsonschema import Draft202012Validator
    from jsonschema.validators import extend

    return extend(Draft202012Validator, {"pattern": _check_pattern})  # type: ignore[no-any-return,no-untyped-call]


def _check_pattern(validator: "Validator", pattern: str, instance: object, schema: Schema) -> "Iterator[ValidationError]":
    from jsonschema import ValidationError

    matcher = _matcher(pattern)  # None for one declared before such patterns were refused, which never matches
    if isinstance(instance, str) and not (matcher is not None and matcher.isinstance_python(instance)):
        yield ValidationError(f"{instance!r} does not match {pattern!r}")


SETS_WITHIN_SETS, POSSESSIVE = re.compile(r"\[[^]]*(?:\[|--|&&|~~)"), re.compile(r"[+*?}]\+")
"""Syntax that the engine without backtracking reads differently than Python does."""
CONSTRUCTS = (
    (re.compile(r"\(\?<?[=!]"), "looks around"),
    (re.compile(r"\\[1-9]|\(\?P=|\(\?\("), "refers back to a group"),
    (re.compile(r"\(\?>"), "has an atomic group"),
    (POSSESSIVE, "repeats possessively"),
    (SETS_WITHIN_SETS, "nests sets"),
)  # Syntax that cannot be matched without backtracking, and what it is called.


def unmatchable(pattern: str) -> str | None:
    """Return why a pattern cannot be matched in time that grows with the text alone, or None."""
    if _matcher(pattern) is not None:
        return None
    unknown = "is too large, or holds what only backtracking engines know"
    return next((what for form, what in CONSTRUCTS if form.search(pattern)), unknown)


@lru_cache(maxsize=128)  # a large one takes megabytes
def _matcher(pattern: str) -> SchemaValidator | None:
    if SETS_WITHIN_SETS.search(pattern) or POSSESSIVE.search(pattern):
        return None
    try:
        return SchemaValidator(core_schema.str_schema(pattern=pattern, regex_engine="rust-regex"))
    except CoreSchemaError:
        return None


def _of_one_dialect(level: Schema) -> Schema:
    """Return the schema without `$schema`, which on an inner level would switch the dialect."""
    return map_levels(level, lambda one: {keyword: part for keyword, part in one.items() if keyword != "$schema"})  # type: ignore[no-any-return]


def _properties(schema: Schema | None, path: Path = ()) -> Iterator[tuple[Path, Schema]]:
    """Yield every property of a declared schema, however deep, with its path."""
    for name, inner in (schema or {}).get("properties", {}).items():
        yield (*path, name), inner
        yield from _properties(inner, (*path, name))
    if schema and "items" in schema:
        yield (*path, ELEMENT), schema["items"]
        yield from _properties(schema["items"], (*path, ELEMENT))


def _numeric(level: Schema) -> bool:
    """Return whether a schema describes a number, or an array of numbers."""
    types = types_of(level)
    if types == {"array"}:
        return "items" in level and _numeric(level["items"])
    return bool(types & {"number", "integer"}) and types <= {"number", "integer", "null"}


def _at(path: Path) -> str:
    return ".".join(path)
