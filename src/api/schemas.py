"""JSON schemas of every input and answer, generated once a process and shared by everything that describes the service."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import TypeAdapter
from pydantic.json_schema import GenerateJsonSchema

from baton.api.errors import Problem
from baton.domain.access.references import Reference
from baton.domain.kernel import NamesOnRequest
from baton.domain.registry import Operation, Registry
from baton.domain.shared.dry_run import DryRun
from baton.domain.shared.naming import with_name_members
from baton.domain.trust.proposal import Proposed

PREFIX = "#/components/schemas/"
OUTPUT = "-Output"
PAGE = re.compile(r"Page\[(\w+?)(?:Item|Row)?\]")
Schema = dict[str, Any]


class _ShortNames(GenerateJsonSchema):
    """Names definitions by their classes, which are unique, so that no shorter name has to be looked for."""

    def get_defs_ref(self, core_mode_ref: Any) -> Any:
        core_ref, mode = core_mode_ref
        parts = (part.rsplit(":", 1)[0].rsplit(".", 1)[-1] for part in re.split(r"([][,])", core_ref))
        short = re.sub(r"\W", "_", PAGE.sub(r"\1Page", "".join(parts)))
        name = short + OUTPUT if mode == "serialization" else short
        self._prioritized_defsref_choices[name] = [name]  # type: ignore[index,list-item]
        return name

    def default_schema(self, schema: Any) -> Any:
        """Return a schema without a default that is an object of members, which generators of clients cannot write."""
        form = super().default_schema(schema)
        if isinstance(form.get("default"), dict) and form["default"]:
            del form["default"]
        return form


@dataclass(frozen=True)
class Forms:
    """The schemas of inputs and answers by operation, and the components that they refer to."""

    inputs: Mapping[str, Schema]
    answers: Mapping[str, Schema]
    accepted: Mapping[str, Schema]
    components: Mapping[str, Schema]


def generate_forms(registry: Registry) -> Forms:
    """Return the forms of every operation. A model that is written as it is read is one component; of another one, the
    form that is read has a name that ends with Input."""
    wanted: list[tuple[tuple[str, str], Any, TypeAdapter[Any]]] = []
    naming = {operation.name for operation in registry if issubclass(operation.input, NamesOnRequest)}
    for operation in registry:
        wanted.append((("input", operation.name), "validation", TypeAdapter(operation.input)))
        for role, form in (("answer", operation.returns), ("accepted", operation.accepted)):
            if form is not None:
                wanted.append(((role, operation.name), "serialization", TypeAdapter(form)))
    wanted += [
        (("common", one.__name__), "serialization", TypeAdapter(one)) for one in (Problem, DryRun, Reference, Proposed)
    ]
    generated, definitions = TypeAdapter.json_schemas(wanted, ref_template=PREFIX + "{model}", schema_generator=_ShortNames)
    answers = [schema for ((role, name), _), schema in generated.items() if role == "answer" and name in naming]
    for name, schema in reachable(answers, definitions["$defs"]).items():
        definitions["$defs"][name] = with_name_members(schema, {"$ref": PREFIX + Reference.__name__ + OUTPUT})
    names = final_names(definitions["$defs"])
    forms: dict[str, dict[str, Schema]] = {"input": {}, "answer": {}, "accepted": {}, "common": {}}
    components = {names[name]: rename(schema, names) for name, schema in definitions["$defs"].items()}
    for (role, name), schema in ((key, schema) for (key, _), schema in generated.items()):
        forms[role][name] = rename(schema, names)
    inputs = {operation.name: input_form(operation, forms["input"][operation.name], components) for operation in registry}
    return Forms(inputs, forms["answer"], forms["accepted"], components)


def input_form(operation: Operation, form: Schema, components: Mapping[str, Schema]) -> Schema:
    """Return the schema of an operation's input itself, without the fields that only the service may set."""
    own = components[form["$ref"].removeprefix(PREFIX)] if "$ref" in form else form
    properties = {name: part for name, part in own.get("properties", {}).items() if name not in operation.internal}
    return {**own, "properties": properties}


def final_names(definitions: Mapping[str, Schema]) -> dict[str, str]:
    """Return the name of each definition in the document."""
    both = {name for name in definitions if name + OUTPUT in definitions}
    plain = {name: name.removesuffix(OUTPUT) for name in definitions}
    unlike = {name for name in both if definitions[name] != rename(definitions[name + OUTPUT], plain)}
    users = {name: {found.removesuffix(OUTPUT) for found in references(definitions[name])} for name in both}
    while spread := {name for name in both - unlike if users[name] & unlike}:  # what refers to two forms has two itself
        unlike |= spread
    return {name: name + "Input" if name in unlike else name.removesuffix(OUTPUT) for name in definitions}


def rename(schema: object, names: Mapping[str, str]) -> Any:
    """Return a schema with its references under other names."""
    match schema:
        case dict():
            return {key: rename(part, names) for key, part in schema.items()}
        case list():
            return [rename(part, names) for part in schema]
        case str() if schema.startswith(PREFIX):
            name = schema.removeprefix(PREFIX)
            return PREFIX + names.get(name, name)
        case _:
            return schema


def references(schema: object) -> Iterator[str]:
    """Yield the name of every component that a schema, or a document with schemas, refers to."""
    match schema:
        case dict():
            for part in schema.values():
                yield from references(part)
        case list():
            for part in schema:
                yield from references(part)
        case str() if schema.startswith(PREFIX):
            yield schema.removeprefix(PREFIX)


def reachable(roots: object, components: Mapping[str, Schema]) -> dict[str, Schema]:
    """Return the components that something refers to, by whatever way, in the order of their names."""
    found: set[str] = set()
    pending = set(references(roots))
    while pending:
        found |= pending
        pending = {name for one in pending for name in references(components[one])} - found
    return {name: components[name] for name in sorted(found)}
