"""Descriptions of numeric properties, added to every schema that a surface shows."""

from typing import Any

ITERATIONS = "Number of iterations in a row that did not converge"
COUNTS = {
    "attempt": "Number of the attempt, from 1.",
    "byte_size": "In bytes.",
    "closing_count": "Number of closing steps.",
    "completed_count": "Number of steps or phases that were completed.",
    "consecutive_failures": "Number of failures in a row.",
    "consecutive_unconverged_iterations": f"{ITERATIONS}.",
    "count": "Number of readings.",
    "daily_token_cap": "Number of tokens in a day, at most.",
    "depth": "Number of levels below the root.",
    "entry_count": "Number of entries.",
    "input_tokens": "Number of tokens.",
    "iterations_remaining": "Number of iterations.",
    "limit": "Number of items on a page, at most.",
    "max_consecutive_unconverged_iterations": f"{ITERATIONS}, at most.",
    "max_depth": "Number of levels, at most.",
    "min_observations": "Number of observations.",
    "missed_count": "Number of firings that were missed.",
    "num_restarts": "Number of restarts of the search.",
    "output_tokens": "Number of tokens.",
    "points_per_axis": "Number of points on each axis.",
    "raw_samples": "Number of samples.",
    "request_max_tokens": "Number of tokens, at most.",
    "scanned": "Number of assets.",
    "skipped_count": "Number of steps or firings that were skipped.",
    "staged_threshold": "Number of observations.",
    "unprocessed": "Number of events.",
}  # Descriptions by property name, for names other than `<thing>_count`.
NUMERIC = frozenset({"integer", "number"})


def describe_counts(form: Any) -> Any:
    """Return the schema or document with a description of every count that has none."""
    match form:
        case {"name": str(name), "in": str(), "schema": dict(schema)}:
            return {**form, "schema": describe_property(name, describe_counts(schema))}
        case {"properties": dict(properties), **rest}:
            members = {name: describe_property(name, describe_counts(schema)) for name, schema in properties.items()}
            return {key: members if key == "properties" else describe_counts(rest[key]) for key in form}
        case dict():
            return {key: describe_counts(part) for key, part in form.items()}
        case list():
            return [describe_counts(part) for part in form]
        case _:
            return form


def describe_property(name: str, schema: Any) -> Any:
    """Return the schema of a property, described where it is a count without description."""
    if not isinstance(schema, dict):
        return schema
    options: list[dict[str, Any]] = [schema, *schema.get("anyOf", ()), *schema.get("oneOf", ())]
    if not any(part.get("type") in NUMERIC for part in options) or any(part.get("description") for part in options):
        return schema
    thing = name.removesuffix("_count").replace("_", " ")
    description = COUNTS.get(name) or (f"Number of {thing}s." if name.endswith("_count") else None)
    return schema if description is None else {**schema, "description": description}
