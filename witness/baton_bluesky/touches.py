"""What a Bluesky plan touches, declared in a line of its docstring: executors serve docstrings, and no attributes of plans.

The line ends the first paragraph, which is all that some executors serve:

    Baton: writes=motor,shutter reads=detectors gated
"""

import re
from collections.abc import Callable, Iterable, Mapping
from inspect import cleandoc
from typing import Any, TypeVar

Plan = TypeVar("Plan", bound=Callable[..., Any])
Names = Iterable[str] | Mapping[str, Iterable[str]]
LINE = re.compile(r"^[ \t]*Baton:(?P<words>.*)$", re.MULTILINE)
NAME = re.compile(r"[A-Za-z_][\w.-]*")
PARAGRAPH_END = re.compile(r"\n[ \t]*(?=\n)")


def baton_touches(*, writes: Names = (), reads: Names = ()) -> Callable[[Plan], Plan]:
    """Declare the parameters, or devices, that a plan writes and reads.

    Give a mapping to name the parameters with the values that are written: `writes={"motor": ["start", "stop"]}`.
    """
    words = [f"{word}={text}" for word, names in (("writes", writes), ("reads", reads)) if (text := names_in_line(names))]
    if not words:
        raise ValueError("baton_touches declares nothing; name what the plan writes or reads.")

    def declare(plan: Plan) -> Plan:
        plan.__doc__ = docstring_with(plan.__doc__, *words)
        return plan

    return declare


def names_in_line(names: Names) -> str:
    """Return names as the line holds them: `motor:start:stop,shutter`; refuse what is no name."""
    if isinstance(names, str):
        raise TypeError(f"Give a list of names, such as [{names!r}], and not a text.")
    entries: list[tuple[str, tuple[str, ...]]] = []
    for name in names:
        values = names[name] if isinstance(names, Mapping) else ()
        if isinstance(values, str):
            raise TypeError(f"Give a list of the parameters with the values of {name}, such as [{values!r}].")
        entries.append((name, tuple(values)))
    for name, values in entries:
        for one in (name, *values):
            if not (isinstance(one, str) and NAME.fullmatch(one)):
                raise ValueError(f"{one!r} is no name of a parameter or device.")
    return ",".join(":".join((name, *values)) for name, values in entries)


def docstring_with(text: str | None, *words: str) -> str:
    """Return a docstring whose Baton line has these words besides those it had; a word with `=` replaces its earlier one."""
    head, gap, rest = paragraphs(cleandoc(text or ""))
    given = {key(word): word for word in words}
    found = LINE.search(head)
    earlier = found["words"].split() if found else []
    kept = {key(word): word for word in earlier}
    line = "Baton: " + " ".join({**kept, **given}.values())
    head = (head[: found.start()] + head[found.end() :] if found else head).strip("\n")
    return "\n".join(part for part in (head, line) if part) + gap + rest


def paragraphs(text: str) -> tuple[str, str, str]:
    """Return the first paragraph of a text, what parts it from the rest, and the rest."""
    end = PARAGRAPH_END.search(text)
    return (text, "", "") if end is None else (text[: end.start()], text[end.start() : end.end()], text[end.end() :])


def key(word: str) -> str:
    """Return the part of a word that stands once in a line."""
    return word.partition("=")[0]
