"""JSON schemas of every input and answer, made from their models for everything that shows a form or asks for one."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from pydantic import BaseModel, TypeAdapter
from pydantic.json_schema import GenerateJsonSchema

from baton.api.errors import Problem
from baton.domain.access.references import Reference
from baton.domain.kernel import NamesOnRequest
from baton.domain.registry import Operation, Registry
from baton.domain.shared.dry_run import DryRun
from baton.domain.shared.field_meanings import describe
from baton.domain.shared.json_schema import COMPONENTS, Schema, is_reference, map_levels, name_in, reachable, references
from baton.domain.shared.naming import with_name_members
from baton.domain.trust.proposal import Proposed

OUTPUT = "-Output"
PAGE = re.compile(r"Page\[(\w+?)(?:Item|Row)?\]")


class _ShortNames(GenerateJsonSchema):
    """Names definitions by their classes, which are unique, so that no shorter name has to be looked for."""

    def get_defs_ref(self, core_mode_ref: Any) -> Any:
        core_ref, mode = core_mode_ref
        parts = (part.rsplit(":", 1)[0].rsplit(".", 1)[-1] for part in re.split(r"([][,])", core_ref))
        short = re.sub(r"\W", "_", PAGE.sub(r"\1Page", "".join(parts)))
        name = short + OUTPUT if mode == "serialization" else short
        self._prioritized_defsref_choices[name] = [name]  # type: ignore[index,list-item]
        return name


@dataclass(frozen=True)
class Forms:
    """The schemas of inputs and answers by operation, and the components that they refer to."""

    inputs: Mapping[str, Schema]
    answers: Mapping[str, Schema]
    accepted: Mapping[str, Schema]
    components: Mapping[str, Schema]


def model_schema(model: type[BaseModel]) -> Schema:
    """Return the schema of a model; what it refers to is among its `$defs`."""
    return model.model_json_schema(schema_generator=_ShortNames)


def input_form(operation: Operation) -> Schema:
    """Return the schema of an operation's input, without the fields that only the service may set."""
    schema = model_schema(operation.input)
    fields = {name: part for name, part in schema.get("properties", {}).items() if name not in operation.internal}
    return {**schema, "properties": fields}


@cache
def input_schema(operation: Operation) -> Schema:
    """Return the schema of an operation's input with the meaning of each field."""
    schema: Schema = describe(input_form(operation))
    return schema


def generate_forms(registry: Registry) -> Forms:
    """Return the forms of every operation. A model that is written as it is read is one component; of another one, the
    form that is read has a name that ends with Input."""
    wanted: list[tuple[tuple[str, str], Any, TypeAdapter[Any]]] = []
    naming = {operation.name for operation in registry if issubclass(operation.input, NamesOnRequest)}
    for operation in registry:
        for role, form in (("answer", operation.returns), ("accepted", operation.accepted)):
            if form is not None:
                wanted.append(((role, operation.name), "serialization", TypeAdapter(form)))
    wanted += [
        (("common", one.__name__), "serialization", TypeAdapter(one)) for one in (Problem, DryRun, Reference, Proposed)
    ]
    generated, shared = TypeAdapter.json_schemas(wanted, schema_generator=_ShortNames)
    definitions: dict[str, Schema] = shared["$defs"]
    answers = [schema for ((role, name), _), schema in generated.items() if role == "answer" and name in naming]
    for name, schema in reachable(answers, definitions).items():
        definitions[name] = with_name_members(schema, {"$ref": COMPONENTS + Reference.__name__ + OUTPUT})
    taken = {operation: input_form(operation) for operation in registry}
    for schema in taken.values():
        definitions |= schema.get("$defs", {})
    names = final_names(definitions)
    components = {names[name]: rename(schema, names) for name, schema in definitions.items()}
    forms: dict[str, dict[str, Schema]] = {"answer": {}, "accepted": {}, "common": {}}
    for (role, name), schema in ((key, schema) for (key, _), schema in generated.items()):
        forms[role][name] = rename(schema, names)
    inputs = {operation.name: rename(schema, names) for operation, schema in taken.items()}
    return Forms(inputs, forms["answer"], forms["accepted"], components)


def final_names(definitions: Mapping[str, Schema]) -> dict[str, str]:
    """Return the name of each definition in the document."""
    both = {name for name in definitions if name + OUTPUT in definitions}
    plain = {name: name.removesuffix(OUTPUT) for name in definitions}
    unlike = {name for name in both if rename(definitions[name], plain) != rename(definitions[name + OUTPUT], plain)}
    users = {name: {found.removesuffix(OUTPUT) for found in references(definitions[name])} for name in both}
    while spread := {name for name in both - unlike if users[name] & unlike}:  # what refers to two forms has two itself
        unlike |= spread
    return {name: name + "Input" if name in unlike else name.removesuffix(OUTPUT) for name in definitions}


def rename(schema: Any, names: Mapping[str, str]) -> Any:
    """Return a schema that refers to components, under these names, and has no default that is an object with members, which
    generators of clients cannot write."""

    def refer(level: Schema) -> Schema:
        parts = {key: part for key, part in level.items() if not (key == "default" and isinstance(part, dict) and part)}
        return {key: COMPONENTS + names[name_in(part)] if is_reference(part) else part for key, part in parts.items()}

    return map_levels(schema, refer)
