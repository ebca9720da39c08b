"""`call`, `dry-run` and `where`: every operation of the service by its name, and where it is declared."""

import json
import sys
from collections.abc import Iterator, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Typer

from baton.cli.daily.completion import complete_operation, complete_source, operation_names, refusal_names
from baton.cli.daily.session import DAILY_WORK, AsJson, ServiceSession, print_json, service_command
from baton.cli.daily.steering import dry_run_lines
from baton.cli.messages import refuse

if TYPE_CHECKING:
    from baton.client.index import KnownRefusal, OperationEntry

app = Typer()
OperationName = Annotated[str, Argument(metavar="OPERATION", help="Its name.", autocompletion=complete_operation)]
Arguments = Annotated[
    list[str] | None,
    Argument(metavar="[KEY=VALUE]...", help="Its fields; values are JSON or text, @FILE is read. Ids may be names."),
]


@service_command(app)
def call(session: ServiceSession, operation: OperationName, arguments: Arguments = None) -> None:
    """Call any operation, and print its answer as JSON."""
    called = known_operation(operation)
    answer = session.client.call(called.name, **parse_arguments(called, arguments or ()))
    if called.media_types:
        if sys.stdout.isatty() and b"\0" in answer.content:
            refuse("The answer is no text; write it to a file: put > and a name behind this command.")
        sys.stdout.buffer.write(answer.content)
        sys.stdout.buffer.flush()
    elif answer is not None or session.as_json:
        print_json(answer)


@service_command(app, "dry-run")
def dry_run(session: ServiceSession, operation: OperationName, arguments: Arguments = None) -> None:
    """Say what a command would record, and record nothing."""
    called = known_operation(operation)
    if called.kind == "query":
        refuse(f"{called.name} is a query and records nothing; use `baton call {called.name}`.")
    answer = session.client.call(called.name, dry_run=True, **parse_arguments(called, arguments or ()))
    session.show(answer, dry_run_lines(answer))


@app.command(rich_help_panel=DAILY_WORK)
def where(
    name: Annotated[str, Argument(help="An operation, its class, or a refusal.", autocompletion=complete_source)],
    as_json: AsJson = False,
) -> None:
    """Say which source declares an operation or a refusal, and what it means; no service is asked."""
    if (operation := find_operation(name)) is not None:
        document, lines = operation_document(operation), operation_lines(operation)
    elif (refusal := find_refusal(name)) is not None:
        document, lines = refusal_document(refusal), refusal_lines(refusal)
    else:
        refuse(
            f"There is no operation and no refusal {name!r}.{similar_names(name, (*operation_names(), *refusal_names()))}"
        )
    if as_json:
        print_json(document)
    else:
        print(*lines, sep="\n")


def known_operation(name: str) -> "OperationEntry":
    """Return the operation of this name, or exit with those like it."""
    if (operation := find_operation(name)) is None:
        refuse(f"There is no operation {name!r}.{similar_names(name, operation_names())}")
    return operation


def find_operation(name: str) -> "OperationEntry | None":
    """Return the operation that has this name, or whose class does."""
    from baton.client.index import OPERATIONS

    wanted = name.replace("-", "_")
    return OPERATIONS.get(wanted) or next((one for one in OPERATIONS.values() if one.input == name), None)


def find_refusal(code: str) -> "KnownRefusal | None":
    """Return the refusal with this code."""
    from baton.client.index import REFUSALS

    return REFUSALS.get(code)


def similar_names(name: str, names: Sequence[str]) -> str:
    """Return a question that names those like it."""
    like = get_close_matches(name, names, n=3)
    return f" Did you mean {' or '.join(like)}?" if like else " `baton call --help` says how to name one."


def operation_document(operation: "OperationEntry") -> dict[str, Any]:
    """Return what there is to say of an operation."""
    return {
        "operation": operation.name,
        "kind": operation.kind,
        "permission": operation.permission,
        "meaning": operation.summary,
        "request": f"{operation.method} {operation.path}",
        "source": operation.source,
        "refusals": list(operation.refusals),
    }


def operation_lines(operation: "OperationEntry") -> Iterator[str]:
    """Yield what there is to say of an operation."""
    about = operation_document(operation)
    yield f"{about['operation']} ({about['kind']}): {about['meaning']}"
    yield f"  declared in  {about['source']}"
    yield f"  over REST    {about['request']}"
    yield f"  permission   {about['permission']}"
    for code in about["refusals"]:
        yield f"  refused by   {code}"


def refusal_document(refusal: "KnownRefusal") -> dict[str, Any]:
    """Return what there is to say of a refusal."""
    from baton.client.index import OPERATIONS

    return {
        "refusal": refusal.code,
        "status": refusal.status,
        "meaning": refusal.meaning,
        "sources": list(refusal.sources),
        "operations": [one.name for one in OPERATIONS.values() if refusal.code in one.refusals],
    }


def refusal_lines(refusal: "KnownRefusal") -> Iterator[str]:
    """Yield what there is to say of a refusal."""
    about = refusal_document(refusal)
    yield f"{about['refusal']} ({about['status']}): {about['meaning']}"
    for source in about["sources"]:
        yield f"  declared in  {source}"
    for operation in about["operations"]:
        yield f"  answered by  {operation}"


def parse_arguments(operation: "OperationEntry", arguments: Sequence[str]) -> dict[str, Any]:
    """Return the fields of a call; a value without a name is the next placeholder of the path."""
    known = dict.fromkeys((*operation.placeholders, *operation.arguments))
    places = iter(operation.placeholders)
    fields: dict[str, object] = {}
    for argument in arguments:
        name, equals, text = argument.partition("=")
        if not equals or name not in known:
            if (place := next(places, None)) is None or equals:
                refuse(f"{operation.name} has no field {name!r}; it takes {', '.join(known) or 'nothing'}.")
            name, text = place, argument
        if name in fields:
            refuse(f"{name} is given twice; a list is written as JSON: {name}='[...]'.")
        fields[name] = parse_value(text, "always" if name == operation.target else operation.arguments[name].text)
    return fields


def parse_value(text: str, wanted_text: str = "") -> object:
    """Return a value as its field wants it: text as it stands, anything else as JSON; @FILE is what the file holds."""
    if text.startswith("@"):
        try:
            text = (sys.stdin.read() if text == "@-" else Path(text[1:]).read_text(encoding="utf-8")).strip()
        except (OSError, UnicodeDecodeError) as error:
            refuse(f"{text[1:]} cannot be read: {error}.")
    if wanted_text and not (text == "null" and wanted_text == "or null"):
        return text
    try:
        return json.loads(text)
    except ValueError:
        return text
