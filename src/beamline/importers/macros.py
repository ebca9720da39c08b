"""Macros of EPICS databases: `$(NAME)`, `${NAME}`, `$(NAME=default)`, nested as deep as they come."""

from collections.abc import Iterable, Mapping

DEEPEST = 20  # macros within macros; more is a circle
LONGEST = 4000  # characters that a text may grow to
CLOSING = {"(": ")", "{": "}"}


class MacroError(ValueError):
    """A macro that has no value, is not closed or never ends."""


def expand(text: str, macros: Mapping[str, str], depth: int = 0) -> str:
    """Return a text with every macro replaced by its value, or by its default where it has none."""
    if depth > DEEPEST:
        raise MacroError(f"The macros of {text[:60]!r} refer to one another in a circle.")
    expanded, place = "", 0
    while (start := text.find("$", place)) >= 0:
        expanded += text[place:start]
        if text[start + 1 : start + 2] not in CLOSING:
            expanded, place = expanded + "$", start + 1
            continue
        end = end_of_macro(text, start + 1)
        expanded, place = expanded + value_of(text[start + 2 : end], macros, depth + 1), end + 1
        if len(expanded) > LONGEST:
            raise MacroError(f"A text grows beyond {LONGEST} characters by its macros.")
    return expanded + text[place:]


def end_of_macro(text: str, start: int) -> int:
    """Return the place of the bracket that closes the one at `start`."""
    awaited: list[str] = []
    for place in range(start, len(text)):
        if text[place] in CLOSING:
            awaited.append(CLOSING[text[place]])
        elif awaited and text[place] == awaited[-1]:
            awaited.pop()
            if not awaited:
                return place
    raise MacroError(f"A macro is not closed: {text[start - 1 : start + 40]!r}.")


def value_of(inside: str, macros: Mapping[str, str], depth: int) -> str:
    """Return the value of what stands between the brackets of a macro; a default is looked at only if it is needed."""
    name, has_default, default = inside.partition("=")
    name = expand(name, macros, depth).strip()
    if name in macros:
        return expand(macros[name], macros, depth)
    if has_default:
        return expand(default, macros, depth)
    raise MacroError(f"The macro {name} has no value; give it with --macro {name}=VALUE or in a substitutions file.")


def read_macros(definitions: Iterable[str]) -> dict[str, str]:
    """Return the macros that are written as `NAME=value`, several of them with commas between."""
    macros: dict[str, str] = {}
    for definition in definitions:
        for part in definition.split(","):
            name, equals, value = part.partition("=")
            if not equals or not name.strip():
                raise MacroError(f"{part!r} is no macro; write NAME=VALUE.")
            macros[name.strip()] = value.strip()
    return macros
