"""People and an agent who hold some commands only with the approval of a group, on a console stack."""

from dataclasses import dataclass
from uuid import UUID

import pytest

from baton.client import Baton
from baton.client.refusals import ProposedError
from baton.demo.identity_provider import REST
from tests.support.console.console_stack import CONDUIT, MIRA, ConsoleStack

NOOR, TIDIER = "Noor Haddad", "Night tidier"
ASKED_FOR = ["EnterAssetMaintenance", "StartRun"]
OWN = ["WithdrawProposal", "ReadEventTexts"]
CONDUCTING = [
    *("Launch", "RegisterProcedureFromRecipe", "ConductRun", "ConductProcedure", "CompleteRun", "AbortRun", "HoldRun"),
    *("CompleteProcedure", "AbortProcedure", "HoldProcedure"),
]
"""What a launch of a plan takes beside the start of its run."""


@dataclass(frozen=True)
class Colleagues:
    """Noor and an agent, each as a client; what they ask for is approved by the group that Mira belongs to."""

    console: ConsoleStack
    group_id: UUID
    agent: Baton
    noor: Baton

    def propose_maintenance(self, asset: str) -> UUID:
        """Have the agent propose that an asset goes into maintenance; return the proposal."""
        with pytest.raises(ProposedError) as proposed:
            self.agent.enter_asset_maintenance(self.console.client.assets[asset].id)
        return proposed.value.proposed.proposal_id

    def propose_run(self, name: str) -> UUID:
        """Have Noor propose the start of a run; return the proposal."""
        plan = self.console.client.plans["Fast tomography"].id
        with pytest.raises(ProposedError) as proposed:
            self.noor.start_run(plan_id=plan, name=name, override_parameters={"exposure": 0.05})
        return proposed.value.proposed.proposal_id


def employ_colleagues(console: ConsoleStack) -> Colleagues:
    """Put Noor, an agent and the group on record, and permit them what they hold."""
    client, provider = console.client, console.provider
    group_id = client.define_group(name="Beamline scientists").group_id
    client.add_group_member(group_id, actor_id=next(client.every("list_actors", name=MIRA)).actor_id)
    noor = client.register_actor(name=NOOR).actor_id
    model = {"provider": "acme", "model": "m-1"}
    agent = client.define_agent(kind="Tidier", name=TIDIER, version="1.0", model_ref=model).agent_id
    client.version_agent(agent)
    for subject, actor_id, name in (("noor", noor, NOOR), ("tidier", agent, TIDIER)):
        client.bind_actor_subject(actor_id, issuer=provider.issuer, subject=subject)
        provider.people[subject] = name
    place = {"conduit_id": CONDUIT, "surface_id": REST, "permitted_principal_ids": [noor, agent]}
    client.define_policy(name="Looking", **place, permitted_commands=OWN, permitted_command_sets=["queries"])
    own = {**place, "permitted_principal_ids": [noor]}
    client.define_policy(name="Conducting", **own, permitted_commands=CONDUCTING)
    approval = {"groups": [group_id], "expires_after": 8 * 3600}
    client.define_policy(name="Only together", **place, permitted_commands=ASKED_FOR, approval=approval)
    agent_client, noor_client = (Baton(console.url, provider.token(subject)) for subject in ("tidier", "noor"))
    return Colleagues(console, group_id, agent_client, noor_client)
