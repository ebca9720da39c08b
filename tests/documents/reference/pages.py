"""The pages: one for each aggregate, one for what belongs to none, and what leads there."""

import sys
from collections.abc import Iterable, Iterator
from typing import Any

from pydantic import TypeAdapter

from baton.api.openapi import STREAM_ID_SCHEMAS
from baton.domain.kernel import Aggregate, Event, History, TimeTravel
from baton.domain.registry import Operation, Registry
from baton.domain.shared.field_meanings import describe
from baton.domain.shared.listing import ListQuery
from baton.domain.shared.sources import operation_source
from tests.documents.reference.forms import FIELD_HEAD, REF, Forms, Schema, code, paragraph, table
from tests.documents.reference.lives import OF_AGGREGATE, recorded_events, states_table
from tests.documents.reference.order import aggregates_in_order, classes_in_order, operations_in_order
from tests.documents.reference.refusals import page_of, refusals_of, refusals_page, sentence, source_link

GENERATED = "<!-- Written by `make reference` from the declarations; a change here is lost. -->"
OTHERS = "service.md"
IN_THE_PATH = "in the path"
Schemas = dict[Any, Schema]


def pages(registry: Registry) -> dict[str, str]:
    """Every page of the reference by the name of its file."""
    made = {page_of(aggregate.name): aggregate_page(aggregate, registry) for aggregate in registry.aggregates.values()}
    made[OTHERS] = others_page(registry)
    made["refusals.md"] = refusals_page(registry, {operation.name: link_to(operation) for operation in registry})
    made["README.md"] = index(registry)
    return {name: "\n\n".join(filter(None, (GENERATED, *parts))) + "\n" for name, parts in made.items()}


def link_to(operation: Operation) -> str:
    """Return a link to an operation from another page."""
    page = OTHERS if operation.aggregate is None else page_of(operation.aggregate.name)
    return f"[{operation.name}]({page}#{operation.name})"


def index(registry: Registry) -> Iterator[str]:
    yield "# Reference"
    yield (
        "Everything that can be asked of the service, aggregate by aggregate: states, verbs, fields, events, questions. "
        "It is written from the declarations by `make reference`; a running service shows the same at `/docs`, as OpenAPI. "
        "The `code` of a refusal is explained in [refusals](refusals.md); what belongs to no aggregate is "
        f"[here]({OTHERS})."
    )
    rows = ((of.context, f"[{of.name}]({page_of(of.name)})", first_sentence(of)) for of in aggregates_in_order(registry))
    yield table(("context", "aggregate", "what it is"), rows)
    yield "## How to read it"
    yield "\n".join(f"- {line}" for line in READING)


READING = (
    "An operation has one name everywhere: its heading here, `operationId` of OpenAPI, the MCP tool. Policies permit it by "
    "the name that stands behind *permission*.",
    "A body is one JSON object with the fields of the table; unknown keys are refused. Over MCP the ids of the path are "
    "arguments beside them, and so is `idempotency_key`.",
    "*left out* is the value that holds when a field is not given. A length counts what is sent; texts are stored trimmed. "
    "*free text* may name persons: events show it only to who holds `ReadEventTexts`, but for reasons of a shown state.",
    "In an example, `<asset_id>` stands for the id of an asset, and so on; the tests carry every example out.",
    "In a table of states a cell says where the verb leads from there, *stays* that the state remains, *as given* "
    "that the input names it, nothing that the verb is refused. Where something else of the input decides between several "
    "states, one of them is shown.",
    "*Records* names the events that a verb was seen to record when the tests drove it through its states.",
    "Every payload of an event also has the aggregate's id and `occurred_at`.",
    "Every `get_<aggregate>` takes `as_of` (a time) or `as_of_version` and then answers from the past. Every history and "
    "every list takes `limit` (1 to 100, else 50) and `cursor`; a list also takes `order` (`asc`, `desc`) and "
    "`min_position`, the `X-Baton-Position` of a command whose effect it must show.",
    "Any request may be refused with the classes [of any request](refusals.md#of-any-request); only those of its own stand "
    "with an operation.",
)


def about(aggregate: Aggregate[Any]) -> str:
    return paragraph(sys.modules[aggregate.state.__module__].__doc__ or "")


def first_sentence(aggregate: Aggregate[Any]) -> str:
    return about(aggregate).split("\n")[0].split(". ")[0].rstrip(".") + "."


def aggregate_page(aggregate: Aggregate[Any], registry: Registry) -> Iterator[str]:
    """Everything about one aggregate."""
    events = classes_in_order(aggregate.events.values())
    schemas, forms = schemas_of(operations_in_order(aggregate.operations), events)
    yield f"# {aggregate.name}"
    yield about(aggregate)
    yield f"Context `{aggregate.context}`, stream type `{aggregate.name}`, id `{aggregate.id_name}`. [Index](README.md)."
    yield from states(aggregate)
    yield "## Verbs"
    for operation in verbs_of(aggregate):
        yield from verb(operation, schemas, forms)
    yield "## Events"
    yield table(
        ("event", "tells", "fields"),
        (
            (f"`{event.__name__}`", paragraph(event.__doc__ or "").replace("\n\n", " "), forms.field_list(schemas[event]))
            for event in events
        ),
    )
    yield "## Questions"
    for operation in questions_of(aggregate):
        yield from question(operation, schemas, forms)
    yield from refusals_section(aggregate.operations)
    if lines := list(forms.section()):
        yield "## Forms"
        yield from lines


def verbs_of(aggregate: Aggregate[Any]) -> list[Operation]:
    """The verbs in the order of a life."""
    life = OF_AGGREGATE[aggregate.name]
    order = (*life.begun_by, *life.verbs)
    verbs = [operation for operation in operations_in_order(aggregate.operations) if operation.kind == "command"]
    return sorted(verbs, key=lambda verb: order.index(verb.name) if verb.name in order else len(order))


def questions_of(aggregate: Aggregate[Any]) -> list[Operation]:
    """The questions; the history, which every aggregate has, comes last."""
    questions = [operation for operation in operations_in_order(aggregate.operations) if operation.kind == "query"]
    return sorted(questions, key=lambda question: issubclass(question.input, History))


def states(aggregate: Aggregate[Any]) -> Iterator[str]:
    life = OF_AGGREGATE[aggregate.name]
    if not life.ways:
        return
    yield "## States"
    axes = "; ".join(f"`{axis}` is {', '.join(ways)}" for axis, ways in life.ways.items())
    first = ", ".join(next(iter(ways)) for ways in life.ways.values())
    begun = " or ".join(f"[{name}](#{name})" for name in life.begun_by)
    yield f"{axes}. It begins {first}, by {begun or 'verbs of others'}."
    yield states_table(life)


def verb(operation: Operation, schemas: Schemas, forms: Forms) -> Iterator[str]:
    yield f"### {operation.name}"
    yield paragraph(operation.input.__doc__ or "")
    yield f"{address(operation)} {' '.join(remarks(operation))}".strip()
    yield table(FIELD_HEAD, input_rows(operation, schemas, forms, operation.internal))
    yield example(operation)
    yield answer(operation, schemas, forms)
    assert operation.aggregate is not None, "a verb belongs to an aggregate"
    if events := recorded_events(operation.aggregate.name).get(operation.name):
        yield f"Records {', '.join(f'`{event}`' for event in events)}."
    yield refused_by(operation)


def input_rows(
    operation: Operation, schemas: Schemas, forms: Forms, without: Iterable[str]
) -> Iterator[tuple[str, str, str, str]]:
    """The fields of an input; what stands in the path over REST is an argument over MCP."""
    for name, words, left, means in forms.fields(schemas[operation.name], without):
        yield name, words, IN_THE_PATH if name in operation.path_fields else left, means


def example(operation: Operation) -> str:
    """Return the fields of an example call, without the ids of its path."""
    given = {name: part for name, part in (operation.example or {}).items() if name not in operation.placeholders}
    return f"Example: {code(given)}." if given else ""


def address(operation: Operation) -> str:
    """Return where an operation is requested, and by which name it is permitted."""
    tool = "" if operation.mcp else ", REST only"
    where = source_link(operation_source(operation))
    return f"`{operation.method} {operation.path}`, permission `{operation.command_name}`{tool}, declared in {where}."


def remarks(operation: Operation) -> Iterator[str]:
    """Yield what is particular about a verb."""
    if operation.callers:
        yield f"For {' and '.join(caller.value.replace('_', ' ') for caller in operation.callers)} actors only."
    if operation.destructive:
        yield "MCP marks it destructive."
    if operation.opens_work:
        yield "It opens long work, and answers 202 while that continues."
    elif operation.accepted is not None:
        yield "It answers 202 where what it asks for is still to come."


def question(operation: Operation, schemas: Schemas, forms: Forms) -> Iterator[str]:
    yield f"### {operation.name}"
    yield paragraph(operation.input.__doc__ or "")
    yield address(operation)
    common = next((kind for kind in (ListQuery, TimeTravel, History) if issubclass(operation.input, kind)), None)
    known = common.model_fields if common else ()
    fields = list(input_rows(operation, schemas, forms, known))
    if operation.has_body or any(left in ("required", IN_THE_PATH) for _, _, left, _ in fields):
        yield table(FIELD_HEAD, fields)
    elif fields:
        filters = ", ".join(f"`{name}` {words.removesuffix(' or null')}" for name, words, *_ in fields)
        yield f"{'Filters' if common is ListQuery else 'Takes'}: {filters}."
    yield example(operation)
    yield answer(operation, schemas, forms)
    yield refused_by(operation)


def answer(operation: Operation, schemas: Schemas, forms: Forms) -> str:
    """Return what an operation answers with, if anything."""
    if operation.input in STREAM_ID_SCHEMAS:
        return "Answers with server-sent events."
    if (operation.name, "answer") not in schemas:
        return ""
    schema = schemas[operation.name, "answer"]
    if schema.get("properties", {}).keys() == {"items", "next_cursor"}:
        item = forms.resolve(schema["properties"]["items"]["items"])
        return f"Answers with pages of {forms.field_list(item) or forms.words(item)}."
    return f"Answers with {forms.field_list(schema) or forms.words(schema)}."


def refused_by(operation: Operation) -> str:
    classes = ", ".join(f"`{refusal.__name__}` {refusal.status}" for refusal in refusals_of(operation))
    return f"Refused by {classes}." if classes else ""


def refusals_section(operations: list[Operation]) -> Iterator[str]:
    """The refusals of a page, with their meaning."""
    found = {refusal: refusal for operation in operations for refusal in refusals_of(operation)}
    rows = sorted((one.__name__, str(one.status), sentence(one, operations)) for one in found)
    if rows:
        yield "## Refusals"
        yield table(("class", "status", "meaning"), ((f"`{name}`", status, means) for name, status, means in rows))


def others_page(registry: Registry) -> Iterator[str]:
    """What can be asked about no aggregate."""
    operations = [operation for operation in operations_in_order(registry) if operation.aggregate is None]
    schemas, forms = schemas_of(operations, [])
    yield "# The service"
    yield "What can be asked of the service as a whole. [Index](README.md)."
    for operation in operations:
        yield from question(operation, schemas, forms)
    yield from refusals_section(operations)
    if lines := list(forms.section()):
        yield "## Forms"
        yield from lines


def schemas_of(operations: list[Operation], events: list[type[Event]]) -> tuple[Schemas, Forms]:
    """The schema of every input, answer and event of a page, and the forms that they name."""
    wanted: list[tuple[Any, Any, TypeAdapter[Any]]] = [(event, "serialization", TypeAdapter(event)) for event in events]
    for operation in operations:
        wanted.append((operation.name, "validation", TypeAdapter(operation.input)))
        if operation.returns is not None:
            wanted.append(((operation.name, "answer"), "serialization", TypeAdapter(operation.returns)))
    generated, definitions = TypeAdapter.json_schemas(wanted, ref_template=REF)
    given = [schema for (_, mode), schema in generated.items() if mode == "validation"]
    forms = Forms(describe(definitions.get("$defs", {})), given)
    return {key: describe(forms.resolve(schema)) for (key, _), schema in generated.items()}, forms
