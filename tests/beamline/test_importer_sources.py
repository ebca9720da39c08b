"""What importers read, and what they refuse: macros, templates, substitutions, inventories, happi databases."""

from pathlib import Path

import pytest

from baton.beamline.importers.csv_inventory import guess_mapping, import_csv
from baton.beamline.importers.drafts import DeviceDraft, SignalRange
from baton.beamline.importers.epics_database import import_epics
from baton.beamline.importers.happi_database import import_happi
from baton.beamline.importers.macros import MacroError, expand, read_macros
from baton.beamline.importers.review_file import review_text
from baton.beamline.importers.sources import UnreadableSourceError
from baton.beamline.reading import Source
from baton.beamline.reading import read_text as read_beamline_text
from baton.domain.equipment.values import SignalLimits
from tests.support.tables import for_each


@for_each(
    ("text", "expanded"),
    [
        ("$(P)$(M)", "bl7:m1"),
        ("${P}x", "bl7:x"),
        ("$(N=3)", "3"),
        ("$(N=$(M))", "m1"),
        ("$(P=$(ABSENT))", "bl7:"),
        ("$(NAMED_$(M))", "motor one"),
        ("$(BOTH)", "bl7:m1"),
        ("$(N=a(b)c)", "a(b)c"),
        ("cost $5, $", "cost $5, $"),
    ],
)
def test_macros_take_values_and_defaults(text: str, expanded: str) -> None:
    macros = {"P": "bl7:", "M": "m1", "NAMED_m1": "motor one", "BOTH": "$(P)$(M)"}
    assert expand(text, macros) == expanded


@for_each(
    ("text", "macros", "sentence"),
    [
        ("$(A)", {}, "The macro A has no value; give it with --macro A=VALUE or in a substitutions file."),
        ("$(A", {"A": "1"}, "A macro is not closed: '$(A'."),
        ("$(A)", {"A": "$(B)", "B": "$(A)"}, "The macros of 'A' refer to one another in a circle."),
        ("$(A)" * 9, {"A": "x" * 999}, "A text grows beyond 4000 characters by its macros."),
    ],
)
def test_macros_that_end_nowhere_are_refused(text: str, macros: dict[str, str], sentence: str) -> None:
    with pytest.raises(MacroError) as refusal:
        expand(text, macros)
    assert str(refusal.value) == sentence


def test_macros_of_the_command_line() -> None:
    assert read_macros(["P=bl7:,R=cam1:", "N = 3"]) == {"P": "bl7:", "R": "cam1:", "N": "3"}
    with pytest.raises(MacroError, match=r"'bl7' is no macro; write NAME=VALUE\."):
        read_macros(["bl7"])


def test_records_become_devices(tmp_path: Path) -> None:
    (tmp_path / "axis.template").write_text(
        '# an axis\nrecord(motor, "$(P)$(M)") {\n field(DESC, "The \\"first\\" axis") field(EGU, deg)\n'
        ' field(DHLM, "$(HIGH=0)") field(DLLM, 0) info(autosave, "VAL") alias("$(P)axis") }\n'
    )
    (tmp_path / "axes.substitutions").write_text(
        'global { P=BL7: }\nfile "axis.template" { pattern {M, HIGH} {m1, 180} {m2} }\n'
        'file axis.template {{ M=m3, HIGH="" }}\n'
    )
    (tmp_path / "rest.db").write_text(
        'include "more.db"\nrecord(ao, "BL7:SHT:POS") { field(DRVL, "1e1") field(DRVH, "20") field(EGU, "mm") }\n'
        'record(ai, "BL7:RING")\nalias("BL7:RING", "RING")\n'
    )
    (tmp_path / "more.db").write_text('record(bi, "BL7:SHT:OPEN") { field(DESC, "Fast shutter") }')
    first, second, third, shutter, loose = import_epics([tmp_path / "axes.substitutions", tmp_path / "rest.db"], [], {})
    assert (first.name, first.family, first.signals) == ('The "first" axis', "RotaryStage", ("BL7:m1",))
    assert first.limits == {"BL7:m1": SignalRange(0, 180, "deg")}
    assert (second.limits, third.limits) == ({}, {})
    assert (shutter.name, shutter.family, shutter.signals) == ("Fast shutter", "Shutter", ("BL7:SHT",))
    assert shutter.limits == {"BL7:SHT:POS": SignalRange(10, 20, "mm")}
    assert (loose.name, loose.signals) == ("BL7", ("BL7:RING",))
    assert any("other devices begin with BL7: as well" in question for question in loose.questions)


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ('record(ao, "$(P)x") {}', "bad.db, line 1: The macro P has no value"),
        (
            'record(ao, "x") {\n  fild(DESC, "y")\n}',
            "bad.db, line 2: field or info or alias should stand where 'fild' stands",
        ),
        ('record(ao, "x") {\n  field(DESC)\n}', "bad.db, line 2: field has the wrong number of values"),
        ('record(ao, "x") {', "bad.db, line 1: the file ends too early"),
        ("\nrecord(ao) {}", "bad.db, line 2: a record has a type and a name"),
        ('record(ao, "x', "bad.db, line 1: a quoted text is not closed"),
        ('table(ao, "x") {}', "bad.db, line 1: 'table' is neither record, include nor alias"),
        ('include "bad.db"', "bad.db includes itself, directly or by others"),
        ('include "absent.db"', "absent.db is no file"),
        ("# nothing", "There is no record in these files"),
        ("record(ao, \0)", "bad.db is no text"),
    ],
)
def test_databases_that_cannot_be_read_are_refused_with_the_line(tmp_path: Path, content: str, sentence: str) -> None:
    (tmp_path / "bad.db").write_text(content)
    with pytest.raises(UnreadableSourceError) as refusal:
        import_epics([tmp_path / "bad.db"], [], {})
    assert sentence in str(refusal.value)


def test_a_pattern_with_too_many_values_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x.db").write_text('record(ao, "$(P)")')
    (tmp_path / "x.substitutions").write_text("file x.db { pattern {P}\n {a}\n {b, c} }")
    with pytest.raises(UnreadableSourceError, match="line 3: the pattern has 1 names, and here are 2 values"):
        import_epics([], [tmp_path / "x.substitutions"], {})


def test_an_inventory_is_read_by_its_columns(tmp_path: Path) -> None:
    path = tmp_path / "inventory.csv"
    path.write_bytes("Gerät;PV;Min;Max;Einheit\nDreh­tisch;BL7:rot:;-90;90,5;deg\n".encode("latin-1"))
    with pytest.raises(UnreadableSourceError, match=r"No column of inventory\.csv is known to hold names"):
        import_csv(path)
    (draft,), _ = import_csv(
        path, {"name": "Gerät", "signal": "PV", "low_limit": "Min", "high_limit": "Max", "unit": "Einheit"}
    )
    assert draft.signals == ("BL7:rot",)
    assert draft.limits == {"BL7:rot": SignalRange(-90, 90.5, "deg")}


def test_a_mapping_is_guessed_from_the_heading() -> None:
    assert guess_mapping(["Device name", "Area", "PV_prefix", "S/N", "Colour"]) == {
        "name": "Device name",
        "within": "Area",
        "serial_number": "S/N",
        "signal": "PV_prefix",
    }


@pytest.mark.parametrize(
    ("content", "mapping", "sentence"),
    [
        ("", None, "inventory.csv has no heading"),
        ("Name,Name\na,b\n", None, "two columns of one name"),
        ("Name\n", None, "a heading and no rows"),
        ("Name,PV\nA,b,c\n", None, "line 2: more cells than the heading has columns"),
        ("Name,PV,Min\nA,b,low\n", None, "inventory.csv, line 2: 'low' is no number"),
        ("Name,PV,Min\nA,b,inf\n", None, "inventory.csv, line 2: 'inf' is no number"),
        ("Name,PV\n,b\n", None, "inventory.csv, line 2: the row has no name"),
        ("Name,PV\nA,b\n", {"nom": "Name"}, "The mapping names the fields nom; there are name, within"),
        ("Name,PV\nA,b\n", {"name": "Device"}, "inventory.csv has no column Device; it has Name, PV"),
        ('Name\n"' + "x" * 20_000 + '"\n', None, "line 2: field larger than field limit"),
    ],
)
def test_inventories_that_cannot_be_read_are_refused(
    tmp_path: Path, content: str, mapping: dict[str, str] | None, sentence: str
) -> None:
    path = tmp_path / "inventory.csv"
    path.write_text(content)
    with pytest.raises(UnreadableSourceError) as refusal:
        import_csv(path, mapping)
    assert sentence in str(refusal.value)


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ("[", "happi.json is no JSON"),
        ("[" * 100_000, "happi.json is no JSON"),
        ("[1]", "happi.json is no happi database"),
        ('{"a": 1}', "happi.json is no happi database"),
        ('{"a": {"active": false}}', "happi.json has no active entry"),
    ],
)
def test_databases_of_happi_that_cannot_be_read_are_refused(tmp_path: Path, content: str, sentence: str) -> None:
    path = tmp_path / "happi.json"
    path.write_text(content)
    with pytest.raises(UnreadableSourceError) as refusal:
        import_happi(path)
    assert sentence in str(refusal.value)


def test_devices_of_one_name_are_told_apart_and_texts_are_quoted() -> None:
    drafts = [
        DeviceDraft("Stage", signals=("BL7:m1",), source="line 1"),
        DeviceDraft("Stage", serial_number="77", source="line 2"),
        DeviceDraft("Stage", source="line 3"),
        DeviceDraft("Axis", within=("Stage",), signals=("BL7:m2",), limits={"BL7:m2": SignalRange(None, 2.5, "mm")}),
        DeviceDraft("yes", model=("Acme: Motion", "12"), family="Slit", questions=("family\nguessed",)),
    ]
    loaded = read_beamline_text(Source("review", review_text(drafts, "Beamline #7", facility="site")))
    assert loaded.content.facility == "site"
    [root] = loaded.content.assets
    assert root.name == "Beamline #7"
    assert root.children is not None
    names = [child.name for child in root.children]
    assert names == ["Stage (BL7:m1)", "Stage (77)", "Stage (3)", "yes", "Stage"]
    place = root.children[-1]
    assert place.children is not None
    assert place.children[0].signal_limits == {"BL7:m2": SignalLimits(high=2.5)}
    [model] = loaded.content.models
    assert (model.name, model.part_number, model.families) == ("Acme: Motion 12", "12", ("Slit",))
    assert root.children[3].model == "Acme: Motion/12"


def test_a_file_that_is_too_large_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "huge.db"
    with path.open("wb") as file:
        file.truncate(65 * 1024 * 1024)
    with pytest.raises(UnreadableSourceError, match=r"huge\.db has more than 64 MB; split it"):
        import_epics([path], [], {})


def test_a_place_that_happi_has_not_is_none(tmp_path: Path) -> None:
    path = tmp_path / "happi.json"
    path.write_text('{"m1": {"name": "m1", "functional_group": "N/A", "location_group": "Hutch B", "prefix": "BL7:M1"}}')
    [draft] = import_happi(path)
    assert draft.within == ("Hutch B",)
