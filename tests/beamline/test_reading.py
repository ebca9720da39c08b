"""Reading beamline files: YAML 1.2 and JSON, faults with their places, and what is written can be read."""

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from baton.beamline import reading
from baton.beamline.file import SECTIONS, RecipeEntry
from baton.beamline.reading import BeamlineFileError, Source, plain_data, read_files, read_text
from baton.beamline.schema import file_schema
from baton.beamline.yaml_text import yaml_text
from tests.support.tables import for_each

DATA = Path(__file__).parents[1] / "data" / "beamline"
TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), max_size=20)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**60), 2**60) | st.floats(allow_nan=False, allow_infinity=False) | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=20,
)
FAULTS = [
    ("assets:\n- name: x\n  tier: Foo\n", "f.yaml:3:3: assets.0.tier: It must be Unit, Component or Device."),
    ("assets:\n- name: x\n  nope: 1\n", "f.yaml:3:3: assets.0.nope: There is no such field."),
    ("assets:\n- tier: Unit\n", "f.yaml:2:3: assets.0: A name is needed."),
    ("assets: [1\n", "f.yaml:2:1: did not find expected ',' or ']'."),
    ("assets: [{name: x, name: y}]", "f.yaml:1:20: name stands twice in this object; keep one."),
    ("baton: 1\n---\nbaton: 1\n", "f.yaml:3:1: a beamline file has one document; write a further one into its own file."),
    ("- 1\n", "f.yaml:1:1: a beamline file is an object with sections such as assets."),
    ("x: &a [1, *a]\n", "f.yaml:1:11: nothing above is marked with the anchor a."),
    ("x: .inf\n", "f.yaml:1:4: .inf is no finite number."),
    ("x: !!python/name:os.system y\n", "f.yaml:1:4: the tag tag:yaml.org,2002:python/name:os.system is not understood; "),
    ("? [a, b]\n: 1\n", "f.yaml:1:3: a key is a plain text."),
]
SCALARS = {
    "yes": "yes",
    "on": "on",
    "true": True,
    "~": None,
    "010": 10,
    "0o10": 8,
    "0x1F": 31,
    "1:30": "1:30",
    "1e3": 1000.0,
    "2026-11-17": "2026-11-17",
    "'5'": "5",
    "bl7:rot": "bl7:rot",
}


def test_a_bluesky_plan_may_be_written_short() -> None:
    step = {"plan": "bl7/scan", "params": {"num": {"__binding__": "points"}}}
    short = RecipeEntry.model_validate({"name": "scan", "capability": "Scan", "steps": [step]})
    long = [{"kind": "action", "name": "plan:bl7/scan", "params": step["params"]}]
    assert short == RecipeEntry.model_validate({"name": "scan", "capability": "Scan", "steps": long})
    recipe = {"recipes": [{"name": "scan", "capability": "Scan", "steps": [step]}]}
    jsonschema.validate(recipe, file_schema())


@for_each(("text", "sentence"), FAULTS)
def test_a_fault_is_said_with_its_line_and_column(text: str, sentence: str) -> None:
    with pytest.raises(BeamlineFileError) as refused:
        read_text(Source("f.yaml", text))
    assert refused.value.faults[0].startswith(sentence)


def test_all_faults_of_all_files_are_said_at_once(tmp_path: Path) -> None:
    for name in ("a.yaml", "b.yaml"):
        (tmp_path / name).write_text("assets:\n- {name: x, tier: Foo, nope: 1}\n")
    with pytest.raises(BeamlineFileError) as refused:
        read_files([tmp_path / "a.yaml", tmp_path / "b.yaml", tmp_path / "missing.yaml"])
    assert len(refused.value.faults) == 5
    assert refused.value.faults[-1].endswith("missing.yaml cannot be read: No such file or directory.")


@for_each(("text", "value"), SCALARS.items())
def test_scalars_mean_what_the_core_schema_of_yaml_1_2_says(text: str, value: Any) -> None:
    assert plain_data(Source("f.yaml", f"x: {text}\n")) == {"x": value}


def test_aliases_that_grow_without_end_are_refused() -> None:
    levels = ["a0: &a0 [1, 1, 1, 1, 1, 1, 1, 1, 1]"]
    levels += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 9)]
    with pytest.raises(BeamlineFileError, match="more than 5,000,000 values"):
        plain_data(Source("f.yaml", "\n".join(levels)))


@given(st.dictionaries(TEXTS, VALUES, max_size=5))
@example({"name " * 40: [], "other " * 40: {}})
def test_what_is_written_is_read_again(data: dict[str, Any]) -> None:
    assert plain_data(Source("f.yaml", yaml_text(data))) == (data or {})
    assert plain_data(Source("f.yaml", yaml_text(data, data.keys()))) == (data or {})


@given(st.dictionaries(st.from_regex(r"[a-z]{1,8}", fullmatch=True), VALUES, max_size=5))
def test_json_is_read_too(data: dict[str, Any]) -> None:
    assert plain_data(Source("f.json", json.dumps(data, indent=1))) == data


@pytest.mark.slow
def test_a_file_obeys_the_published_schema_and_every_field_is_described() -> None:
    schema = file_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    data = plain_data(Source("whole.yaml", (DATA / "whole.yaml").read_text()))
    jsonschema.validate(data, schema)
    assert set(SECTIONS) <= set(schema["properties"])
    assert [path for path, form in properties(schema) if not form.get("description")] == []
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({"assets": [{"tier": "Unit"}]}, schema)


def properties(schema: Any, path: str = "") -> Any:
    """Yield every property of a schema with its path."""
    if isinstance(schema, dict):
        own = schema.get("properties")
        if isinstance(own, dict):
            yield from ((f"{path}.{name}", form) for name, form in own.items() if isinstance(form, dict))
        for name, part in schema.items():
            yield from properties(part, f"{path}.{name}")
    elif isinstance(schema, list):
        for part in schema:
            yield from properties(part, path)


def test_places_of_faults_are_found_in_linear_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """The text is parsed once more for all of them, not once for each."""
    parsed: list[int] = []
    parse = reading.parse_events
    monkeypatch.setattr(reading, "parse_events", lambda text: (parsed.append(len(text)), parse(text))[1])
    entries = [f"- name: A{number}\n  no_such_field: {number}\n" for number in range(400)]
    with pytest.raises(BeamlineFileError) as refused:
        read_text(Source("f.yaml", "families:\n" + "".join(entries)))
    places = [fault.split(": ")[0] for fault in refused.value.faults if "no_such_field" in fault]
    assert places == [f"f.yaml:{2 * number + 3}:3" for number in range(400)]
    assert len(parsed) == 2


@pytest.mark.parametrize("name", ["f.json", "f.yaml"])
@pytest.mark.parametrize("levels", [300, 5_000, 200_000])
def test_what_nests_too_deep_is_refused(name: str, levels: int) -> None:
    with pytest.raises(BeamlineFileError) as refused:
        read_text(Source(name, '{"assets": ' + "[" * levels + "]" * levels + "}"))
    assert refused.value.faults == (f"{name}: lists and objects nest deeper than 200 levels; write them flatter.",)
