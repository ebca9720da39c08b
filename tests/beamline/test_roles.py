"""The roles that are shipped: applied to a fresh service by its first administrator, each does its work and no other's."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from baton.beamline.catalog import starter_roles
from baton.beamline.commands import DONE, REFUSED, apply_content, apply_files
from baton.cli.embedded.postgres import EmbeddedPostgres
from baton.client import Baton
from baton.client.refusals import Forbidden, ProposedError
from tests.support.api.module_service import ModuleService, running_module_service
from tests.support.databases import fresh_database
from tests.support.documents.fenced_blocks import ROOT
from tests.support.tables import for_each

ADMINISTRATOR = "019a0d00-0000-7000-8000-0000000000aa"
FIRST_BEAMLINE = ROOT / "docs" / "first-beamline.yaml"
ROLES = ("Operators", "Scientists", "Approvers", "Engineers", "Administrators")
CHECKSUM = {"algorithm": "sha256", "value": "9f" * 32}
People = dict[str, Baton]


def acting_as(service: ModuleService, actor_id: object) -> Baton:
    client = Baton(service.api.base_url)
    client.http.headers["X-Principal-Id"] = str(actor_id)
    return client


@pytest.fixture(scope="module")
def people(postgres: EmbeddedPostgres, template: str) -> Iterator[People]:
    """Somebody of each role, after the first administrator's first hour and the engineer's first file."""
    enforced: dict[str, Any] = {"authorization_mode": "policy", "bootstrap_principal_id": ADMINISTRATOR}
    with fresh_database(postgres, template) as url, running_module_service(url, **enforced) as service:
        first = acting_as(service, ADMINISTRATOR)
        assert apply_content(first, [starter_roles()]) == DONE
        first.add_group_member("Administrators", actor_id=ADMINISTRATOR)
        first.revoke_grant(
            "Bootstrap administration", permitted_principal_id=ADMINISTRATOR, reason="The roles are on record."
        )
        people: People = {}
        for role in ROLES:
            actor_id = first.register_actor(name=f"One of the {role}").actor_id
            first.add_group_member(role, actor_id=actor_id)
            people[role] = acting_as(service, actor_id)
        assert apply_files(people["Engineers"], [FIRST_BEAMLINE]) == REFUSED, "the clearance is the approver's"
        assert apply_files(people["Approvers"], [FIRST_BEAMLINE]) == DONE
        yield people


def test_the_roles_are_on_record_as_the_file_says(people: People, capsys: pytest.CaptureFixture[str]) -> None:
    assert apply_content(people["Administrators"], [starter_roles()]) == DONE
    assert capsys.readouterr().out == "The record says what the file says.\n"


def test_an_operator_works_through_a_shift(people: People) -> None:
    operator = people["Operators"]
    sample = operator.register_subject(name="Bar 7").subject_id
    operator.mount_subject(sample, asset_id="Rotation stage", reason="the next one")
    run = operator.start_run(plan_id="First scan", name="Night 1", subject_id=sample).run_id
    operator.hold_run(run, reason="beam dump")
    operator.mark_supply_unavailable("Storage ring", reason="beam dump")
    operator.mark_supply_recovering("Storage ring", reason="it comes back")
    operator.restore_supply("Storage ring", reason="it is back")
    operator.abort_run(run, reason="sample slipped")
    assert {"ReadSignals", "ReadEventTexts", "Launch"} <= set(operator.get_my_access().permitted_commands)
    assert operator.get_run(run).end_reason == "sample slipped"


def test_a_scientist_keeps_data_and_has_its_discarding_approved(people: People) -> None:
    scientist, approver = people["Scientists"], people["Approvers"]
    me = scientist.get_my_access().principal_id
    scientist.register_campaign(name="Ageing", intent="Series", lead_actor_id=me)
    run = scientist.start_run(plan_id="First scan", name="Mine").run_id
    named = {"name": "scan.h5", "uri": "file:///data/scan.h5", "encoding": {"media_type": "application/x-hdf5"}}
    dataset = scientist.register_dataset(**named, checksum=CHECKSUM, byte_size=7, producing_run_id=run).dataset_id
    with pytest.raises(ProposedError) as proposed:
        scientist.discard_dataset(dataset, reason="taken twice")
    shown = approver.get_proposal(proposed.value.proposed.proposal_id)
    assert shown.may_approve
    assert "WithdrawProposal" not in scientist.get_my_access().permitted_commands
    scientist.withdraw_proposal(shown.id, reason="kept after all")


OTHERS_WORK: list[tuple[str, Callable[[Baton], object]]] = [
    ("Operators", lambda client: client.define_family(name="Not mine", affordances=[])),
    ("Operators", lambda client: client.expire_clearance("First scan", reason="in the way")),
    ("Scientists", lambda client: client.mark_supply_unavailable("Storage ring", reason="not mine")),
    ("Approvers", lambda client: client.start_run(plan_id="First scan", name="Not mine")),
    ("Engineers", lambda client: client.expire_clearance("First scan", reason="in the way")),
    ("Engineers", lambda client: client.register_actor(name="Friend")),
]


@for_each(("role", "attempt"), OTHERS_WORK)
def test_each_is_refused_the_work_of_another_and_learns_who_may(
    people: People, role: str, attempt: Callable[[Baton], object]
) -> None:
    with pytest.raises(Forbidden) as refused:
        attempt(people[role])
    command = refused.value.detail.split(" ", 1)[0]
    named = people[role].get_holders(command_name=command).at_once
    assert "group Administrators (Bootstrap administrator, One of the Administrators)" in named
