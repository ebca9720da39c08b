"""The definitions of a module as they are written, the same text on every Python. A module is not parsed but cut at the
lines that begin a statement, as the formatter leaves them, because processes do this when they start."""

import re
import sys
from functools import cache

STRING_OR_COMMENT = re.compile(  # It begins with one of three characters, which makes the search for it fast.
    r"""["'#](?:(?<=\#)[^\n]*|(?<=")""(?:[^"\\]+|\\.|"(?!""))*"{3}|(?<=")(?:[^"\\\n]+|\\.)*"|(?<=')(?:[^'\\\n]+|\\.)*')""",
    re.S,
)
FURTHER_LINE = r"(?:(?![A-Za-z_@])[^\n]*|(?:else|elif|except|finally)\b[^\n]*)\n"
STATEMENT = re.compile(rf"^(?:@[^\n]*\n(?:{FURTHER_LINE})*)*([A-Za-z_][^\n]*\n)((?:{FURTHER_LINE})*)", re.M)
DEFINED = re.compile(r"(?:async )?(?:def|class) (\w+)|(\w+):|((?:[\w*, ]+ = )+)")


class ModuleSource:
    """The text of each definition in a module, without comments, and where the names that the module imports come from."""

    def __init__(self, text: str) -> None:
        self.definitions: dict[str, str] = {}
        self.imports: dict[str, tuple[str, str]] = {}  # By name: the module that it is imported from, and its name there.
        self._members: dict[str, ModuleSource] = {}
        self._read(STRING_OR_COMMENT.sub(on_one_line, text))

    def definition(self, qualified_name: str) -> str | None:
        """Return the text of a function, class, constant or method, or of the function that a local one is written in."""
        name, _, member = qualified_name.partition(".")
        text = self.definitions.get(name)
        if text is None or not member or member.startswith("<"):
            return text
        if name not in self._members:
            self._members[name] = ModuleSource("".join(_inner_lines(body) for _, body in STATEMENT.findall(text)))
        return self._members[name].definition(member)

    def _read(self, text: str) -> None:
        for statement in STATEMENT.finditer(text):
            head, body = statement.groups()
            if head.startswith("from "):
                _, module, _, names = f"{head}{body}".split(maxsplit=3)
                imported = re.findall(r"(\w+)(?: as (\w+))?", names)
                self.imports |= {alias or name: (module, name) for name, alias in imported}
            elif head.startswith("if "):
                self._read(_inner_lines(body))
            elif (defined := DEFINED.match(head)) is not None:
                for name in re.findall(r"\w+", defined[0]) if defined[3] else (defined[1] or defined[2],):
                    self.definitions[name] = self.definitions.get(name, "") + statement[0]


def on_one_line(found: re.Match[str]) -> str:
    return "" if found[0][0] == "#" else found[0].replace("\n", "\\n")


def _inner_lines(body: str) -> str:
    """Return the lines within a statement; an import that is within one is not followed."""
    return re.sub(r"^(?:    (?:from .*\n)?|[a-z].*\n)", "", body, flags=re.M)


@cache
def _source_of(file: str) -> ModuleSource:
    with open(file, encoding="utf-8") as text:
        return ModuleSource(text.read())


def module_source(name: str) -> ModuleSource:
    """Return the source of a module that is imported."""
    file = getattr(sys.modules[name], "__file__", None) or ""
    if not file.endswith(".py"):
        raise TypeError(f"{name} has no source beside it, which Baton reads")
    return _source_of(file)
