"""People: who may do what and through which policy, in words; what is refused says why, and grants are a form away."""

import re
from collections.abc import AsyncIterator
from dataclasses import dataclass
from urllib.parse import parse_qs, urlsplit

import pytest

from tests.support.api.samples import SYSTEM_CONDUIT, SYSTEM_HTTP
from tests.support.console.page_source import PageSource
from tests.support.console.staff import ENFORCED, Person, employ
from tests.support.service import running_api

ASKING = ("ListActors", "GetActor", "ListPolicies", "GetPolicy", "EvaluatePolicy", "ListSurfaces")


@dataclass(frozen=True)
class Staff:
    """An administrator, an auditor who may see who may do what, an operator, somebody barred, somebody without a grant."""

    administrator: Person
    auditor: Person
    operator: Person
    barred: Person
    stranger: Person
    position: int


@pytest.fixture(scope="module")
async def staff(module_database: str) -> AsyncIterator[Staff]:
    async with running_api(module_database, **ENFORCED) as api:
        administrator = await employ(api, "Ada Administrator", sets=("all",))
        auditor = await employ(api, "Aldo Auditor", *ASKING)
        operator = await employ(api, "Olga Operator", "HoldRun", "GetRun")
        barred = await employ(api, "Bert Barred", "HoldRun")
        stranger = await employ(api, "Sten Stranger")
        position = await administrator.api.execute(f"/actors/{barred.id}/deactivate")
        yield Staff(administrator, auditor, operator, barred, stranger, position)


def answer_in(page: str) -> str:
    """Return what the page answers."""
    return page[page.index('id="region-answer"') : page.index('id="region-mine"')]


async def ask_page(staff: Staff, who: Person | None = None, **query: str) -> str:
    """Return what the page answers to a question, to the administrator unless somebody else asks."""
    return answer_in(await (who or staff.administrator).see("/console/people", after=staff.position, **query))


@pytest.mark.parametrize("command", ["HoldRun", "hold_run"])
async def test_a_command_says_who_may_give_it_and_through_which_policy(staff: Staff, command: str) -> None:
    answer = await ask_page(staff, command=command)
    rows = re.findall(r"<tr><th scope=\"row\">(.*?)</th> <td>(.*?)</td> <td>(.*?)</td> <td>(.*?)</td>", answer)
    shown = {
        re.sub(r"<.*?>", "", who).strip(): (kind, re.sub(r"<.*?>", "", through), over) for who, kind, through, over in rows
    }
    assert shown["Ada Administrator"] == ("Human", "Work of Ada Administrator the set all", "System HTTP")
    assert shown["Olga Operator"] == ("Human", "Work of Olga Operator by its name", "System HTTP")
    assert shown["RunSupervisor"][0] == "Agent"
    assert shown["RunSupervisor"][2] == "inside the service"
    assert "Bert Barred ✗ Deactivated" in shown
    assert not {"Sten Stranger", "Aldo Auditor"} & set(shown)


async def test_a_question_is_answered_with_the_policy_or_the_reason(staff: Staff) -> None:
    yes = await ask_page(staff, actor=staff.operator.id, command="HoldRun")
    assert "Yes: Olga Operator may hold run" in yes
    assert f'href="/console/policies/{staff.operator.policy_id}"' in yes
    reasons = {
        (staff.operator.id, "AbortRun"): "The policies that name Olga Operator over System HTTP do not hold it.",
        (staff.stranger.id, "HoldRun"): "No policy for calls over System HTTP names Sten Stranger.",
        (staff.barred.id, "HoldRun"): "Bert Barred is deactivated, and everything a deactivated actor asks for is refused.",
        (
            staff.administrator.id,
            "ObserveSupplyStatus",
        ): "Only a service account can give it, and Ada Administrator is human.",
    }
    for (actor, command), sentence in reasons.items():
        answer = await ask_page(staff, actor=actor, command=command)
        assert ">✗</span> No: " in answer, command
        assert sentence in answer
    assert "takes no permission" in await ask_page(staff, actor=staff.stranger.id, command="GetMyAccess")


async def test_what_is_said_is_what_happens(staff: Staff) -> None:
    for person in (staff.operator, staff.stranger, staff.auditor):
        for command, path in (("GetRun", f"/runs/{staff.operator.id}"), ("ListPolicies", "/policies")):
            answer = await ask_page(staff, actor=person.id, command=command)
            assert ("Yes: " in answer) is ((await person.api.get(path)).status_code != 403), (person, command)


async def test_a_grant_is_a_form_away_and_counts_at_once(staff: Staff) -> None:
    answer = await ask_page(staff, actor=staff.stranger.id, command="ListZones")
    (href,) = (link.get("href") for link in PageSource.of(answer).all("a") if "define_policy" in link.get("href"))
    form = {name: values[0] for name, values in parse_qs(urlsplit(href).query).items()}
    assert form.pop("name") == "Sten Stranger may list zones"
    assert form == {
        "conduit_id": SYSTEM_CONDUIT,
        "surface_id": SYSTEM_HTTP,
        "permitted_principal_ids": staff.stranger.id,
        "permitted_commands": "ListZones",
    }
    page = PageSource.of((await staff.administrator.api.get(href)).text)
    typed = {**form, "name": "Zones of Sten", "form_token": page.value("form_token")}
    cookies = {"cookie": "; ".join(f"{name}={value}" for name, value in staff.administrator.api.client.cookies.items())}
    given = await staff.administrator.api.request("POST", "/console/do/define_policy", data=typed, headers=cookies)
    assert given.status_code == 303, given.text
    assert (await staff.stranger.api.get("/zones")).status_code == 200
    position = int(parse_qs(urlsplit(given.headers["location"]).query)["position"][0])
    person = answer_in(await staff.administrator.see("/console/people", after=position, actor=staff.stranger.id))
    assert "Zones of Sten" in person
    (revoke,) = (link.get("href") for link in PageSource.of(person).all("a") if "revoke_grant" in link.get("href"))
    assert f"permitted_principal_id={staff.stranger.id}" in revoke


async def test_a_person_shows_what_each_policy_permits(staff: Staff) -> None:
    answer = await ask_page(staff, actor=staff.operator.id)
    assert "Work of Olga Operator" in answer
    assert "Run: 1 command, 1 query" in answer
    assert 'href="/console/people?command=HoldRun">Hold run</a>' in answer
    barred = await ask_page(staff, actor=staff.barred.id)
    assert "Deactivated: everything asked for is refused" in barred
    assert f"/console/do/reactivate_actor?actor_id={staff.barred.id}" in barred


async def test_who_may_look_but_not_grant_is_told_so(staff: Staff) -> None:
    answer = await ask_page(staff, staff.auditor, actor=staff.stranger.id, command="HoldRun")
    assert "To grant it takes the permission DefinePolicy." in answer
    assert "/console/do/define_policy" not in answer
    assert "takes RevokePolicyGrant" in await ask_page(staff, staff.auditor, command="HoldRun")


async def test_everybody_learns_by_name_who_can_and_what_one_may(staff: Staff) -> None:
    page = await staff.operator.see("/console/people", after=staff.position, command="HoldRun")
    assert "Who may: Ada Administrator, Olga Operator" in answer_in(page)
    assert staff.administrator.id not in answer_in(page)
    form = await staff.operator.see("/console/do/define_zone")
    assert "it takes the permission <code>DefineZone</code>. Who may: Ada Administrator" in form
    refused = await ask_page(staff, staff.operator, actor=staff.barred.id)
    assert "This takes the permission ListPolicies and GetPolicy and EvaluatePolicy and ListActors" in refused
    mine = page[page.index('id="region-mine"') :]
    assert "1 command and 1 query" in mine
    assert ">Hold run</a>" in mine


async def test_names_of_holders_are_for_those_who_are_signed_in_and_active(staff: Staff) -> None:
    asked = {"command_name": "HoldRun"}
    named = (await staff.stranger.api.get("/holders", **asked)).json()
    assert {"Ada Administrator", "Olga Operator"} <= set(named["at_once"])
    assert "Bert Barred" not in named["at_once"]
    assert (await staff.barred.api.get("/holders", **asked)).json()["reason"] == "not_signed_in"
    assert (await staff.stranger.api.get("/holders", command_name="HoldRum")).json()["reason"] == "unknown_command"


async def test_every_verb_that_is_not_permitted_leads_to_who_can(staff: Staff) -> None:
    boss = staff.administrator.api
    zone = await boss.create("/subjects", {"name": "Bar 7"})
    looker = await employ(boss, "Lotte Looker", sets=("queries",))
    page = await looker.see(f"/console/subjects/{zone}")
    assert '<a href="/console/people?command=MountSubject">Who can</a>' in page


async def test_an_unknown_name_is_no_command(staff: Staff) -> None:
    assert "Nothing is called HoldRum" in await ask_page(staff, command="HoldRum")
    assert "Nothing is called nobody" in await ask_page(staff, actor="nobody")


@pytest.fixture(scope="module")
async def groups(staff: Staff) -> dict[str, str]:
    """A group that lists the operator and one told by a claim; the first holds a command with the approval of the other."""
    api = staff.administrator.api
    shift = await api.create("/groups", {"name": "Night shift"})
    await api.execute(f"/groups/{shift}/add-member", {"actor_id": staff.operator.id})
    claim = {"issuer": "https://id.lumen.example", "path": "groups", "value": "scientists"}
    scientists = await api.create("/groups", {"name": "Scientists", "claim": claim})
    place = {"conduit_id": SYSTEM_CONDUIT, "surface_id": SYSTEM_HTTP, "permitted_principal_ids": []}
    approval = {"groups": [scientists], "principals": [staff.administrator.id], "expires_after": 3600}
    held = {"permitted_commands": ["AbortRun"], "permitted_group_ids": [shift], "approval": approval}
    policy = await api.create("/policies", {"name": "Aborting together", **place, **held})
    mark = await api.execute(f"/groups/{scientists}/rename", {"name": "Beamline scientists"})
    return {"shift": shift, "scientists": scientists, "policy": policy, "position": str(mark)}


async def see_groups(staff: Staff, groups: dict[str, str], who: Person | None = None, **query: str) -> str:
    return await (who or staff.administrator).see("/console/people", after=int(groups["position"]), **query)


async def test_groups_show_their_members_claims_and_policies_with_their_verbs(staff: Staff, groups: dict[str, str]) -> None:
    page = await see_groups(staff, groups)
    shown = page[page.index('id="region-groups"') : page.index('id="region-actors"')]
    assert "Night shift" in shown
    assert ">Olga Operator</a>" in shown
    assert "Whose token of https://id.lumen.example has <code>scientists</code> at <code>groups</code>." in shown
    assert f'May approve what <a href="/console/policies/{groups["policy"]}">Aborting together</a> permits' in shown
    assert "with approval" in shown
    for verb in (
        f"add_group_member?group_id={groups['shift']}",
        f"remove_group_member?group_id={groups['shift']}&amp;actor_id={staff.operator.id}",
        f"retire_group?group_id={groups['shift']}",
        f"revoke_grant?policy_id={groups['policy']}&amp;permitted_group_id={groups['shift']}",
        "define_group",
    ):
        assert f"/console/do/{verb}" in shown, verb
    auditor = await see_groups(staff, groups, staff.auditor)
    assert "This takes the permission ListGroups and GetGroup" in auditor
    assert "Night shift" not in auditor


async def test_a_person_shows_what_they_hold_through_a_group_and_with_approval(staff: Staff, groups: dict[str, str]) -> None:
    answer = answer_in(await see_groups(staff, groups, actor=staff.operator.id))
    assert f'Belongs to <a href="/console/groups/{groups["shift"]}">Night shift</a>.' in answer
    granted = answer[answer.index("Aborting together") :]
    assert "With approval" in granted
    assert "as a member of Night shift" in granted
    assert "the group Beamline scientists, Ada Administrator may approve it, within 1 h 0 min." in granted
    assert f"revoke_grant?policy_id={groups['policy']}&amp;permitted_group_id={groups['shift']}" in granted
    assert f"extend_policy?policy_id={groups['policy']}" in granted


async def test_a_command_with_approval_is_said_to_be_so(staff: Staff, groups: dict[str, str]) -> None:
    verdict = answer_in(await see_groups(staff, groups, actor=staff.operator.id, command="AbortRun"))
    assert "With approval: Olga Operator may propose to abort run" in verdict
    assert f'href="/console/policies/{groups["policy"]}"' in verdict
    holders = answer_in(await see_groups(staff, groups, command="AbortRun"))
    assert re.search(r'href="/console/groups/[0-9a-f-]{36}">Night shift</a></th> <td>Group</td>', holders)
    assert "by its name, with approval" in holders


async def test_one_learns_ones_own_groups_and_what_becomes_a_proposal(staff: Staff, groups: dict[str, str]) -> None:
    page = await see_groups(staff, groups, staff.operator)
    mine = page[page.index('id="region-mine"') : page.index('id="region-groups"')]
    assert "1 command with approval: each becomes a proposal" in mine
    assert f'You belong to <a href="/console/groups/{groups["shift"]}">Night shift</a>.' in mine
    assert "as a member of Night shift, with approval" in mine
