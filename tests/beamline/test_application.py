"""Beamline files applied to a real service: made once, unchanged the second time, changed by the verbs there are."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from baton.beamline.commands import DIFFERENT, DONE, REFUSED, apply_files, diff_files, export_record
from baton.client import Baton

WHOLE = Path(__file__).parents[1] / "data" / "beamline" / "whole.yaml"
Apply = Callable[..., tuple[int, list[str]]]


@pytest.fixture
def apply(baton: Baton, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Apply:
    """Apply the text of a file; return the exit code and what was printed."""

    def apply_text(text: str, **options: Any) -> tuple[int, list[str]]:
        file = tmp_path / "file.yaml"
        file.write_text(text)
        code = apply_files(baton, [file], **options)
        printed = capsys.readouterr()
        return code, (printed.out + printed.err).splitlines()

    return apply_text


def asset(baton: Baton, name: str) -> Any:
    """Return an asset by its name."""
    return baton.assets[name].get()


def test_a_file_is_applied_once_and_an_export_of_it_changes_nothing(
    empty_baton: Baton, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert diff_files(empty_baton, [WHOLE]) == DIFFERENT
    capsys.readouterr()
    code = apply_files(empty_baton, [WHOLE])
    output = capsys.readouterr().out
    assert code == DONE, output
    before = empty_baton.session.position
    assert diff_files(empty_baton, [WHOLE]) == DONE, capsys.readouterr().out
    assert apply_files(empty_baton, [WHOLE]) == DONE
    assert capsys.readouterr().out.splitlines()[-1] == "The record says what the file says."
    assert export_record(empty_baton) == DONE
    exported = tmp_path / "exported.yaml"
    exported.write_text(capsys.readouterr().out)
    assert apply_files(empty_baton, [exported]) == DONE, capsys.readouterr().out
    assert capsys.readouterr().out.splitlines()[-1] == "The record says what the file says."
    assert empty_baton.session.position == before, "nothing was recorded"
    assert export_record(empty_baton) == DONE
    assert capsys.readouterr().out == exported.read_text(), "an export is the same text again"
    assert export_record(empty_baton, "rotary") == DONE
    part = capsys.readouterr().out
    assert "rotary" in part
    assert "testcamera" not in part.lower()
    assert export_record(empty_baton, "nothing") == REFUSED


def test_what_differs_is_changed_by_its_verb_and_back_again(apply: Apply, baton: Baton) -> None:
    family = "families: [{name: Lift, affordances: [Translatable, Homeable, Limitable]}]\n"
    file = family + (
        "assets:\n- name: lift bench\n  children:\n  - name: lift\n    families: [Lift]\n"
        "    identifiers: [{kind: EPICS_PV, value: 'lift:z'}]\n    signal_limits: {'lift:z': {low: 0, high: %d}}\n"
    )
    assert apply(file % 10)[0] == DONE
    for high in (20, 10, 20):
        code, lines = apply(file % high)
        assert (code, lines[0][:2]) == (DONE, "~ ")
        assert asset(baton, "lift").signal_limits["lift:z"].high == high
        assert apply(file % high)[1] == ["The record says what the file says."]
    without = file.replace("families: [Lift]", "families: []").replace("signal_limits: {'lift:z': {low: 0, high: %d}}", "")
    assert apply(without)[0] == DONE
    assert (asset(baton, "lift").family_ids, len(asset(baton, "lift").signal_limits)) == (frozenset(), 1), (
        "left out, left alone"
    )
    assert apply(f"{without}    signal_limits: {{}}\n")[0] == DONE
    assert asset(baton, "lift").signal_limits == {}


def test_a_new_version_is_made_once_however_often_content_goes_back_and_forth(apply: Apply, baton: Baton) -> None:
    head = "capabilities: [{code: baton.capability.shine, name: Shine, executor_shapes: [PROCEDURE]}]\n"
    recipe = head + (
        "recipes: [{name: Shine once, capability: Shine, steps: [{kind: setpoint, address: 'lamp:on', value: %d}]}]\n"
    )
    assert apply(recipe % 1)[0] == DONE
    for count, value in enumerate((2, 1, 2), 2):
        assert apply(recipe % value)[0] == DONE
        assert len(list(baton.recipes["Shine once"].history())) == count
        assert baton.recipes["Shine once"].get().steps[0].value == value


def test_a_recipe_says_what_is_drawn_and_an_export_says_it(
    apply: Apply, baton: Baton, capsys: pytest.CaptureFixture[str]
) -> None:
    head = (
        "capabilities: [{code: baton.capability.drawn, name: Drawn, executor_shapes: [PROCEDURE]}]\n"
        "recipes:\n- name: Draw it\n  capability: Drawn\n  steps:\n"
        "  - {kind: setpoint, address: 'map:x', value: 1}\n  - {kind: capture, address: 'map:y', capture_name: level}\n"
    )
    plot = "  plot: {x: 'map:x', y: [level], kind: %s}\n"
    for kind in ("scatter", "line"):
        file = head + plot % kind
        assert apply(file)[0] == DONE
        assert baton.recipes["Draw it"].get().plot.kind == kind
        assert apply(file)[1] == ["The record says what the file says."]
    assert export_record(baton) == DONE
    assert apply(capsys.readouterr().out)[1] == ["The record says what the file says."]
    assert apply(f"{head}  plot: null\n")[0] == DONE
    assert baton.recipes["Draw it"].get().plot is None


def test_a_recipe_follows_its_pattern_and_an_export_says_it(
    apply: Apply, baton: Baton, capsys: pytest.CaptureFixture[str]
) -> None:
    head = (
        "capabilities: [{code: baton.capability.map, name: Map, executor_shapes: [PROCEDURE]}]\n"
        "recipes:\n- name: Map it\n  capability: Map\n"
    )
    line = "{kind: line, axes: [{address: 'map:x', start: 0, stop: 1}], num: %d, returns: true}"
    closing = "  closing_steps: [{kind: setpoint, address: 'map:lamp', value: 0}]\n"
    for num in (3, 2):
        file = f"{head}  pattern: {line % num}\n{closing}"
        assert apply(file)[0] == DONE
        recipe = baton.recipes["Map it"].get()
        assert (len(recipe.steps), len(recipe.closing_steps), recipe.pattern.num) == (num + 1, 2, num)
        assert apply(file)[1] == ["The record says what the file says."]
    assert export_record(baton) == DONE
    assert apply(capsys.readouterr().out)[1] == ["The record says what the file says."]
    assert apply(f"{head}  steps: [{{kind: setpoint, address: 'map:x', value: 7}}]\n{closing}")[0] == DONE
    recipe = baton.recipes["Map it"].get()
    assert (recipe.pattern, len(recipe.steps), len(recipe.closing_steps)) == (None, 1, 1)


def test_what_cannot_be_changed_is_said_and_the_rest_is_done(apply: Apply, baton: Baton) -> None:
    assert apply("assets: [{name: fixed, tier: Unit}]\n")[0] == DONE
    code, lines = apply("assets: [{name: fixed, tier: Component, children: [{name: new part}]}]\n")
    assert code == REFUSED
    assert lines[0].startswith("! asset fixed: tier Unit -> Component: no command changes it")
    assert asset(baton, "new part").lifecycle == "Active"


def test_references_that_lead_nowhere_or_to_several_change_nothing(apply: Apply, baton: Baton) -> None:
    assert apply("assets: [{name: left, children: [{name: twin}]}, {name: right, children: [{name: twin}]}]\n")[0] == DONE
    before = baton.session.position
    code, lines = apply("supplies: [{name: gas, kind: gas, asset: twin}, {name: oil, kind: oil, asset: nowhere}]\n")
    assert code == REFUSED
    assert lines == [
        f"baton: {lines[0].split(' ')[1]} asset: 'twin' may be left/twin, right/twin; write it out.",
        f"baton: {lines[1].split(' ')[1]} asset: there is no asset 'nowhere', neither in the file nor on record.",
    ]
    assert lines[0].split(" ")[1].endswith("file.yaml:1:12:")
    assert baton.session.position == before
    assert apply("supplies: [{name: gas, kind: gas, asset: left/twin}]\n")[0] == DONE


def test_an_asset_is_renamed_and_moved_with_what_is_below_it(apply: Apply, baton: Baton) -> None:
    assert (
        apply("assets: [{name: old bench, children: [{name: arm, children: [{name: tip}]}]}, {name: new bench}]\n")[0]
        == DONE
    )
    tip = asset(baton, "tip").id
    moved = "assets: [{name: new bench, children: [{name: long arm, formerly: old bench/arm, children: [{name: tip}]}]}]\n"
    code, lines = apply(moved)
    assert (code, lines[:2]) == (
        DONE,
        ["~ asset new bench/long arm: name arm -> long arm", "~ asset new bench/long arm: below old bench -> new bench"],
    )
    assert asset(baton, "tip").id == tip
    assert asset(baton, "long arm").parent_id == asset(baton, "new bench").id
    assert apply(moved)[1] == ["The record says what the file says."]


def test_nothing_is_retired_without_prune_and_a_word(apply: Apply, baton: Baton) -> None:
    both = "assets: [{name: tree, children: [{name: kept}, {name: gone, children: [{name: leaf}]}]}, {name: other tree}]\n"
    less = "assets: [{name: tree, children: [{name: kept}]}]\n"
    assert apply(both)[0] == DONE
    assert apply(less)[1] == ["The record says what the file says."]
    code, lines = apply(less, prune=True)
    assert (code, lines[:2]) == (
        REFUSED,
        ["- asset tree/gone/leaf: decommission_asset", "- asset tree/gone: decommission_asset"],
    )
    assert asset(baton, "leaf").lifecycle == "Active", "nobody said yes"
    assert apply(less, prune=True, yes=True)[0] == DONE
    assert asset(baton, "gone").lifecycle == "Decommissioned"
    assert asset(baton, "other tree").lifecycle == "Active", "the file does not have this tree"
    assert apply(both)[0] == DONE, "what was retired is made anew, not found by the key of its first making"
    names = [row.lifecycle for row in baton.every("list_assets", name="gone")]
    assert sorted(names) == ["Active", "Decommissioned"]


def test_a_queue_is_held_resumed_and_retired_as_long_as_nothing_is_in_it(apply: Apply, baton: Baton) -> None:
    file = "assets: [{name: queued}, {name: aside}]\nqueues: [{name: Next, asset: queued, status: %s}%s]\n"
    more = ", {name: Empty, asset: aside}"
    assert apply(file % ("Held", more))[0] == DONE
    code, lines = apply(file % ("Active", more))
    assert (code, lines[0], apply(file % ("Held", more))[0]) == (DONE, "~ queue Next: status Held -> Active", DONE)
    work = "capabilities: [{code: baton.capability.waiting, name: Waiting, executor_shapes: [PROCEDURE]}]\n"
    work += "recipes: [{name: Waiting, capability: Waiting, steps: [{kind: setpoint, address: a, value: 1}]}]\n"
    assert apply(work)[0] == DONE
    target = {"kind": "ConductRecipe", "recipe_id": baton.recipes["Waiting"].id, "name": "Wait"}
    baton.add_queue_items("Next", items=[{"title": "Wait", "target": target}])
    code, lines = apply("queues: [{name: Other, asset: lonely}]\nassets: [{name: lonely}]\n", prune=True, yes=True)
    assert (code, lines[2]) == (DONE, "- queue Empty: retire_queue")
    assert [one.name for one in baton.every("list_queues", status="Held")] == ["Next"], "something is in it"


def test_two_things_of_one_name_are_never_guessed_at(apply: Apply, baton: Baton, capsys: pytest.CaptureFixture[str]) -> None:
    for _ in "12":
        baton.register_actor(name="Namesake")
    code, lines = apply("actors: [{name: Namesake}]\n")
    assert code == REFUSED
    assert "several of actors are called Namesake on record" in lines[0]
    assert export_record(baton) == DONE
    assert "# left out: 2 of actors are called Namesake" in capsys.readouterr().out


def test_a_caller_who_may_not_is_refused_and_what_needs_it_is_left(apply: Apply, baton: Baton) -> None:
    code, lines = apply(
        "supplies: [{name: beam, kind: photon_beam, facility: facility}]\n"
        "clearances: [{title: Past, template: ESAF, assets: [], in_force: true}]\n"
    )
    assert code == REFUSED
    (refused,) = [line for line in lines if line.startswith("!")]
    assert refused.startswith("! clearances: facility/Past: ")
    assert refused.endswith(
        "file.yaml:2:14: register_clearance is refused: The clearance covers nothing; bind it to at least one subject, "
        "asset, run, procedure or outside reference."
    )
    assert apply("supplies: [{name: beam, kind: photon_beam}]\n")[1] == ["The record says what the file says."]


FAULTY = """\
families:
- name: Faulty lift
  affordances: [Translatable]
  settings_schema:
    $schema: "https://json-schema.org/draft/2020-12/schema"
    type: object
    additionalProperties: false
    unevaluatedProperties: false
    properties: {speed: {type: number, unit: {system: udunits, code: mm/s}}}
assets:
- name: faulty bench
  children:
  - name: faulty lift
    families: [Faulty lift]
    settings: {speed: fast}
  - name: inverted
    identifiers: [{kind: EPICS_PV, value: "faulty:z"}]
    signal_limits:
      "faulty:z": {low: 360, high: -360}
  - {name: fine}
capabilities: [{code: not-one, name: Misspelt}]
"""
FAULTS = [("15:5", "update_asset_settings"), ("19:7", "set_asset_signal_limits"), ("21:16", "define_capability")]


def test_a_comparison_rehearses_every_command_and_names_the_lines_of_what_would_be_refused(
    apply: Apply, baton: Baton, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "file.yaml"
    file.write_text(FAULTY)
    assert diff_files(baton, [file]) == REFUSED
    told = [line for line in capsys.readouterr().out.splitlines() if line.startswith("!")]
    assert [line.partition(f"{file}:")[2].split(" would")[0] for line in told] == [": ".join(one) for one in FAULTS], told
    assert "low must not be above high" in told[1]
    assert not [*baton.every("list_assets", name="faulty bench")], "nothing is recorded"
    assert apply(FAULTY, dry_run=True)[0] == REFUSED

    code, lines = apply(FAULTY)
    refused = [line.partition(f"{file}:")[2] for line in lines if line.startswith("!")]
    assert (code, sorted(line.split(": ")[0] for line in refused)) == (REFUSED, [place for place, _ in FAULTS]), lines
    assert asset(baton, "fine").lifecycle == "Active", "the rest is done"


def test_an_address_that_two_assets_claim_is_told(apply: Apply) -> None:
    own = "{name: %s, identifiers: [{kind: EPICS_PV, value: 'both:rot'}]}"
    code, lines = apply(f"assets: [{own % 'one'}, {own % 'two'}]\n")
    assert (code, lines[0][:2]) == (DONE, "? ")
    assert "file.yaml:1:10: one claims the address both:rot, and so does two; gates" in lines[0]
    told = apply(f"assets: [{own % 'three'}]\n", dry_run=True)[1][0]
    assert "three claims the address both:rot, and so does one and two; gates" in told
    alone = "assets: [{name: one, identifiers: [{kind: EPICS_PV, value: 'alone:rot'}]}]\n"
    assert apply(alone)[1][0].startswith("~ asset one"), "the other one has both:rot alone by then"


def test_a_status_that_somebody_reported_since_is_left_alone(apply: Apply, baton: Baton) -> None:
    file = "supplies: [{name: air, kind: air, status: Available}]\n"
    assert apply(file)[0] == DONE
    baton.supplies["air"].mark_unavailable(reason="a leak")
    code, lines = apply(file)
    assert code == REFUSED
    assert "somebody has reported it since" in lines[0]


def test_a_dry_run_changes_nothing(apply: Apply, baton: Baton) -> None:
    for _ in "12":
        code, lines = apply("enclosures: [{name: Nowhere}]\n", dry_run=True)
        assert (code, lines[0], lines[-1]) == (DONE, "+ enclosure Nowhere", "Nothing was changed: this was a dry run.")
    assert not list(baton.every("list_enclosures", name="Nowhere"))


def test_groups_and_policies_are_changed_by_what_they_gain_and_lose(apply: Apply, baton: Baton) -> None:
    people = "actors: [{name: Noor}, {name: Piet}]\n"
    file = people + (
        "groups: [{name: Watch, members: [%s]}]\n"
        "policies: [{name: Watching, principals: [%s], groups: [%s], commands: [%s], command_sets: [%s]}]\n"
    )
    assert apply(file % ("Noor", "Piet", "", "StartRun", ""))[0] == DONE
    group = baton.groups["Watch"].get()
    code, lines = apply(file % ("Noor, Piet", "Noor", "Watch", "StartRun, HoldRun", "run.queries"))
    assert code == DONE
    assert "~ group Watch: member Piet" in lines
    assert "~ policy Watching: permits Noor, Watch, run.queries, HoldRun too" in lines
    assert "~ policy Watching: grant of Piet is revoked" in lines
    view, noor = baton.policies["Watching"].get(), baton.actors["Noor"].id
    assert (view.permitted_principal_ids, view.permitted_group_ids) == ({noor}, {group.group_id})
    assert (view.permitted_command_sets, {"StartRun", "HoldRun"} <= view.permitted_commands) == ({"run.queries"}, True)
    assert len(baton.groups["Watch"].get().member_ids) == 2
    last = file % ("Piet", "Noor", "", "HoldRun, GetRun", "run.queries")
    assert apply(last)[0] == DONE, "GetRun is held by the set already"
    assert baton.groups["Watch"].get().member_ids == {baton.actors["Piet"].id}
    view = baton.policies["Watching"].get()
    assert (view.permitted_group_ids, "StartRun" in view.permitted_commands) == (frozenset(), False)
    assert apply(last)[1] == ["The record says what the file says."]
    assert apply("policies: [{name: Watching}]\ngroups: [{name: Watch}]\n")[1] == ["The record says what the file says."]


def test_a_claim_and_an_approval_stay_as_they_were_defined(apply: Apply) -> None:
    claim = "{issuer: 'https://id.example.org', path: groups, value: %s}"
    file = (
        f"actors: [{{name: Ilse}}]\ngroups: [{{name: Told, claim: {claim}}}]\n"
        "policies:\n- {name: Asked, groups: [Told], commands: [StartRun],\n"
        "   approval: {principals: [Ilse], expires_after: %d}}\n"
    )
    assert apply(file % ("day", 60))[0] == DONE
    assert apply(file % ("day", 60))[1] == ["The record says what the file says."]
    code, lines = apply(file % ("night", 90))
    assert code == REFUSED
    assert lines[0].startswith("! group Told: claim ")
    assert lines[0].endswith("no command changes it; retire the group, then apply again")
    assert lines[1].startswith("! policy Asked: approval ")
    without = "policies: [{name: Asked, approval: null}]\n"
    assert apply(without)[1][0].startswith("! policy Asked: approval "), "null asks for none"


def test_a_group_that_a_file_does_not_name_is_retired_where_that_is_asked_for(empty_baton: Baton, tmp_path: Path) -> None:
    both, one = tmp_path / "both.yaml", tmp_path / "one.yaml"
    both.write_text("groups: [{name: Kept}, {name: Gone}]\n")
    one.write_text("groups: [{name: Kept}]\n")
    assert apply_files(empty_baton, [both]) == DONE
    assert apply_files(empty_baton, [one]) == DONE
    assert apply_files(empty_baton, [one], prune=True, yes=True) == DONE
    assert {row.name: row.status for row in empty_baton.every("list_groups")} == {"Kept": "Active", "Gone": "Retired"}


def test_a_member_who_was_deactivated_is_passed_over(
    empty_baton: Baton, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "file.yaml"
    file.write_text("actors: [{name: Here}, {name: Left}]\ngroups: [{name: Crew, members: [Here, Left]}]\n")
    assert apply_files(empty_baton, [file]) == DONE
    empty_baton.call("deactivate_actor", actor_id=empty_baton.actors["Left"].id)
    capsys.readouterr()
    assert export_record(empty_baton) == DONE
    exported = capsys.readouterr().out
    assert "members: [Here]" in exported
    assert "left out" not in exported
    file.write_text(exported)
    assert apply_files(empty_baton, [file]) == DONE
    assert len(empty_baton.groups["Crew"].get().member_ids) == 2, "an export changes nothing"
