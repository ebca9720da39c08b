"""A software agent that knows nothing of the service but what its tools, answers and refusals say: it calls a tool with the
arguments of the example, makes or lists what the example's placeholders name, and does what a refusal says."""

import json
import re
from collections.abc import Callable, Sequence
from typing import Any

from mcp import Client

PLACEHOLDER = re.compile(r"<(\w+)>")
SUFFIX = re.compile(r"_(?:ids?|code)$|s$")
ALLOWED = re.compile(r"Allowed from: ([\w, ]+)\.")
MAKING = ("define", "register", "start")
FINDERS = ("search_operations", "call_operation")
MENDINGS = 6  # times that one call is mended before the agent gives it up
STEM = 5  # letters by which two words are taken for one


class GaveUpError(Exception):
    """The agent knows no further."""


def words(text: str) -> list[str]:
    """The words of a text, of a name and of a state, without their endings."""
    split = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", text).replace("_", " ").lower()
    return [word[:STEM] for word in re.findall(r"[a-z]+", split)]


class FollowingAgent:
    """One agent with its tools, the ids it has met and the calls it has made."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._tools: dict[str, Any] = {}
        self._ids: dict[str, str] = {}
        self._done: set[str] = set()
        self._under_way: list[str] = []
        self.calls: list[str] = []
        self.refused: list[str] = []

    async def look(self) -> None:
        """Read the tools."""
        self._tools = {tool.name: tool for tool in (await self._client.list_tools()).tools if tool.name not in FINDERS}

    async def call(self, tool: str, arguments: dict[str, Any]) -> tuple[dict[str, Any], bool]:
        """Call a tool; return what it answered, and whether it was done. Ids in the answer are remembered by their name."""
        self.calls.append(tool)
        answer = await self._client.call_tool(tool, arguments)
        told = answer.content[0].text  # type: ignore[union-attr]
        body: dict[str, Any] = next(json.loads(line) for line in told.splitlines() if line.startswith("{"))
        if answer.is_error:
            self.refused.append(f"{tool}: {body['detail']}")
            return body, False
        self._ids |= {name: value for name, value in body.items() if name.endswith("_id") and isinstance(value, str)}
        self._done.add(tool)
        return body, True

    async def carry_out(self, tool: str) -> dict[str, Any]:
        """Call a tool as its example shows, with as few arguments as it takes; mend the call while it is refused."""
        wanted = [name for name in self.example(tool) if name in self._required_arguments(tool)]
        self._under_way.append(tool)
        for _ in range(MENDINGS):
            known = [name for name in self.example(tool) if name not in wanted and self._is_known(self.example(tool)[name])]
            shown = {name: self._example_value(tool, name) for name in (*wanted, *known)}
            arguments = {name: await self._fill(value) for name, value in shown.items()}
            body, done = await self.call(tool, {**self._references(tool), **arguments})
            if done:
                self._under_way.remove(tool)
                return body
            await self._mend(tool, wanted, body)
        raise GaveUpError(self.refused)

    def example(self, tool: str) -> dict[str, Any]:
        """The arguments in the description of a tool."""
        example: dict[str, Any] = json.loads(self._tools[tool].description.rpartition("Example: ")[2])
        return example

    def _required_arguments(self, tool: str) -> Sequence[str]:
        required: Sequence[str] = self._tools[tool].input_schema.get("required", ())
        return required

    def _example_value(self, tool: str, name: str) -> Any:
        """The value that an example has for an argument: that of the tool, or of another one."""
        examples = [self.example(tool), *map(self.example, self._tools)]
        return next((example[name] for example in examples if name in example), None)

    def _is_known(self, value: Any) -> bool:
        """Whether a value refers to things, all of which the agent has met."""
        named = PLACEHOLDER.findall(json.dumps(value))
        return bool(named) and all(name in self._ids for name in named)

    def _can_fill(self, value: Any) -> bool:
        """Whether all that a value refers to is known, or can be made without what is only being made."""
        unknown = [name for name in PLACEHOLDER.findall(json.dumps(value)) if name not in self._ids]
        makers = {name: self._maker(name) for name in unknown}
        return all(self._lister(name) if maker is None else maker not in self._under_way for name, maker in makers.items())

    def _references(self, tool: str) -> dict[str, str]:
        """The arguments that name something the agent has met, such as `parent_run_id` once there is a `run_id`."""
        names = self._tools[tool].input_schema["properties"]
        return {name: id for name in names for known, id in self._ids.items() if name.endswith(f"_{known}")}

    async def _fill(self, value: Any) -> Any:
        match value:
            case str() if (found := PLACEHOLDER.fullmatch(value)) is not None:
                return await self._id(found[1])
            case list():
                return [await self._fill(part) for part in value if self._can_fill(part)]
            case dict():
                return {name: await self._fill(part) for name, part in value.items()}
            case _:
                return value

    async def _id(self, name: str) -> str:
        """The id of a thing of this kind; where none was met, one is made or, where nothing makes it, looked up."""
        if name not in self._ids:
            if (maker := self._maker(name)) is not None:
                await self.carry_out(maker)
            elif (lister := self._lister(name)) is not None:
                listed, _ = await self.call(lister, {"limit": 1})
                self._ids |= {key: id for item in listed["items"] for key, id in item.items() if key.endswith(name)}
                self._ids[name] = next(id for key, id in self._ids.items() if key.endswith(name))
        return self._ids[name]

    def _maker(self, name: str) -> str | None:
        """The tool that makes a thing with an id of this name, by all that is known of it."""
        thing = name.removesuffix("_id")
        makers = [tool for tool in self._tools for verb in MAKING if re.match(f"{verb}_{thing}(_from_|$)", tool)]
        return max(makers, key=len, default=None)

    def _lister(self, name: str) -> str | None:
        """The tool that lists things with an id of this name."""
        return next((tool for tool in self._tools if re.match(rf"list_(\w+_)?{name.removesuffix('_id')}s$", tool)), None)

    async def _mend(self, tool: str, wanted: list[str], problem: dict[str, Any]) -> None:
        """Do about a refusal what it says: give an argument that it names, or do what it names, with what leads there."""
        said = words(problem["detail"])
        named = {field["name"] for field in problem.get("needed", ())} | set(re.findall(r"[a-z_]+", problem["detail"]))
        if self._give(tool, wanted, lambda name: name in named):
            return
        told = [other for other in self._tools if set(words(other)) <= set(said) and other not in self._done]
        helpful = [other for other in told if other not in self._under_way and self._can_fill(self._needs(other))]
        # What the sentence is about stands first in it.
        helpful.sort(key=lambda other: [said.index(word) for word in reversed(words(other))])
        for other in [one for one in helpful if words(one)[-1] == words(helpful[0])[-1]]:
            for before in (*self._path_to(other), other):
                if before not in self._done:
                    await self.carry_out(before)
        if not helpful and not self._give(tool, wanted, lambda name: words(SUFFIX.sub("", name))[-1] in said):
            raise GaveUpError(self.refused)

    def _give(self, tool: str, wanted: list[str], is_named: Callable[[str], bool]) -> bool:
        """Add an argument that a refusal names to those of the next try, first one of the tool's own example; return whether
        there is one."""
        own = self.example(tool)
        for name in sorted(self._tools[tool].input_schema["properties"], key=lambda name: name not in own):
            value = self._example_value(tool, name)
            if name not in wanted and is_named(name) and value is not None and self._can_fill(value):
                wanted.append(name)
                return True
        return False

    def _needs(self, tool: str) -> dict[str, Any]:
        return {name: self._example_value(tool, name) for name in self._required_arguments(tool)}

    def _path_to(self, tool: str, seen: tuple[str, ...] = ()) -> list[str]:
        """The tools that bring a thing into the state from which this one is allowed, told by the names of both."""
        allowed = ALLOWED.search(self._tools[tool].description)
        if allowed is None:
            return []
        target = self._required_arguments(tool)[0]
        for state in words(allowed[1]):
            for other, form in self._tools.items():
                same = self._required_arguments(other)[:1] == [target] and not form.annotations.read_only_hint
                harmless = form.annotations.destructive_hint is False
                if same and harmless and other not in (tool, *seen) and state in words(other):
                    return [*self._path_to(other, (*seen, tool)), other]
        return []
