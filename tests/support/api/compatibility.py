"""Comparison of two OpenAPI documents: what a client of the older one would miss in the newer one."""

from collections.abc import Iterator
from typing import Any

Document = dict[str, Any]
UPPER, LOWER = ("maxLength", "maximum", "maxItems"), ("minLength", "minimum", "minItems")


def breaking_changes(old: Document, new: Document) -> Iterator[str]:
    """Yield every removal and narrowing: of paths, methods, parameters, bodies and answers."""
    for path, methods in old["paths"].items():
        for method, entry in methods.items():
            place = f"{method.upper()} {path}"
            if (now := new["paths"].get(path, {}).get(method)) is None:
                yield f"{place} is gone"
            else:
                yield from operation_changes(place, entry, now, old, new)


def operation_changes(place: str, entry: Document, now: Document, old: Document, new: Document) -> Iterator[str]:
    """Yield what an operation takes no more, needs now, or answers no more."""
    before, after = ({one["name"]: one for one in parameters(part, all)} for part, all in ((entry, old), (now, new)))
    for name in before.keys() - after.keys():
        yield f"{place} takes no parameter {name} any more"
    for name, parameter in after.items():
        if parameter.get("required") and not before.get(name, {}).get("required"):
            yield f"{place} needs the parameter {name}"
        if name in before:
            yield from input_changes(f"{place} {name}", before[name]["schema"], parameter["schema"], old, new)
    if "requestBody" in entry:
        if "requestBody" not in now:
            yield f"{place} takes no body any more"
        else:
            yield from input_changes(f"{place} body", *(json_schema(one["requestBody"]) for one in (entry, now)), old, new)
    for status, response in entry["responses"].items():
        if not status.startswith("2"):
            continue
        if status not in now["responses"]:
            yield f"{place} answers {status} no more"
            continue
        was, is_now = (resolve(part, all) for part, all in ((response, old), (now["responses"][status], new)))
        answered, answers = (without_proposal(json_schema(one)) for one in (was, is_now))
        if answered is not None:
            yield from answer_changes(f"{place} {status}", answered, answers, old, new)


def parameters(entry: Document, document: Document) -> list[Document]:
    return [resolve(one, document) for one in entry.get("parameters", ())]


def json_schema(holder: Document) -> Any:
    return holder.get("content", {}).get("application/json", {}).get("schema")


def without_proposal(schema: Any) -> Any:
    """Return the schema of an answer without the proposal that a command may become instead: that happens only under a
    policy that asks for approval, and no policy of a release that knew none does."""
    match schema:
        case {"anyOf": [answer, {"$ref": "#/components/schemas/Proposed"}]}:
            return answer
    return schema


def resolve(part: Document, document: Document) -> Document:
    """Return what a reference leads to."""
    while "$ref" in part:
        place: Any = document
        for name in part["$ref"].removeprefix("#/").split("/"):
            place = place[name]
        part = place
    return part


def input_changes(
    place: str, old: Any, new: Any, was: Document, now: Document, seen: frozenset[str] = frozenset()
) -> Iterator[str]:
    """Yield what a schema of an input takes no more, or demands besides."""
    if (mark := str((old, new))) in seen:
        return
    seen |= {mark}
    old, new = resolve(old, was), resolve(new, now)
    yield from (f"{place} takes {value!r} no more" for value in old.get("enum", ()) if value not in new.get("enum", [value]))
    if "enum" in new and "enum" not in old and "const" not in old:
        yield f"{place} takes only some values now"
    yield from (f"{place} has a narrower {limit}" for limit in (*UPPER, *LOWER) if is_narrower(limit, old, new))
    if kinds(old) - kinds(new) and kinds(new):
        yield f"{place} takes {', '.join(sorted(kinds(old) - kinds(new)))} no more"
    for name in set(new.get("required", ())) - set(old.get("required", ())):
        yield f"{place} needs {name}"
    for name, part in old.get("properties", {}).items():
        if name not in new.get("properties", {}):
            yield f"{place} takes no {name} any more"
        else:
            yield from input_changes(f"{place}.{name}", part, new["properties"][name], was, now, seen)
    if "items" in old and "items" in new:
        yield from input_changes(f"{place}[]", old["items"], new["items"], was, now, seen)


def is_narrower(limit: str, old: Document, new: Document) -> bool:
    """Return whether a limit excludes what it did not exclude before."""
    if limit not in new:
        return False
    if limit in UPPER:
        return bool(new[limit] < old.get(limit, float("inf")))
    return bool(new[limit] > old.get(limit, 0 if limit != "minimum" else float("-inf")))


def answer_changes(
    place: str, old: Any, new: Any, was: Document, now: Document, seen: frozenset[str] = frozenset()
) -> Iterator[str]:
    """Yield what a schema of an answer promises no more."""
    if new is None:
        yield f"{place} answers nothing any more"
        return
    if (mark := str((old, new))) in seen:
        return
    seen |= {mark}
    old, new = resolve(old, was), resolve(new, now)
    if kinds(new) - kinds(old) and kinds(old):
        yield f"{place} may be {', '.join(sorted(kinds(new) - kinds(old)))} now"
    for name in set(old.get("required", ())) - set(new.get("required", ())):
        if name in new.get("properties", {}):
            yield f"{place} may come without {name}"
    for name, part in old.get("properties", {}).items():
        if name not in new.get("properties", {}):
            yield f"{place} has no {name} any more"
        else:
            yield from answer_changes(f"{place}.{name}", part, new["properties"][name], was, now, seen)
    if "items" in old and "items" in new:
        yield from answer_changes(f"{place}[]", old["items"], new["items"], was, now, seen)


def kinds(schema: Document) -> set[str]:
    """Return the kinds of JSON values of a schema, where it says so."""
    if "type" in schema:
        return {schema["type"]} if isinstance(schema["type"], str) else set(schema["type"])
    options = [*schema.get("anyOf", ()), *schema.get("oneOf", ())]
    return {kind for option in options for kind in ([option["type"]] if isinstance(option.get("type"), str) else [])}
