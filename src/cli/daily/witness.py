"""`witness`: lets a witness of Bluesky's runs record them, and nothing else."""

from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option, Typer

from baton.cli.daily.session import ServiceSession, service_command
from baton.cli.messages import refuse

if TYPE_CHECKING:
    from baton.client import Baton

app = Typer(no_args_is_help=True, help="Witnesses, which record the runs of a RunEngine.")
CONDUIT, SURFACE = "00000000-0000-0000-0000-000000000010", "00000000-0000-0000-0000-000000000020"
COMMANDS = (
    *("WitnessRun", "WitnessRunChange", "AppendObservations", "RegisterRunFiles", "TruncateRun"),
    *("RegisterDataset", "RegisterDistribution", "RecordAcquisition"),
)
QUERIES = (
    *("ListPlans", "ListSubjects"),  # A witness finds the plan and the subject that it knows by name.
    *("PreflightRun", "GetPlan", "GetMethod", "GetRun", "StreamEvents"),  # A gate asks before a run, and whether it is Held.
)


@service_command(app)
def grant(
    session: ServiceSession,
    name: Annotated[str, Argument(help="What the account of the witness is called.")],
    issuer: Annotated[str | None, Option(help="The identity provider that issues its tokens.")] = None,
    subject: Annotated[str | None, Option(help="Who it is to that provider: the `sub` of its tokens.")] = None,
) -> None:
    """Make the account of a witness and a policy that lets it record runs; what is there already stays as it is."""
    if (issuer is None) is not (subject is None):
        refuse("A token is known by its issuer and its subject; give both, or neither.")
    account_id, is_new = find_or_make_account(session.client, name)
    policy_id = find_or_define_policy(session.client, name, account_id)
    if issuer is not None:
        session.client.call("bind_actor_subject", actor_id=account_id, issuer=issuer, subject=subject)
    made: dict[str, Any] = {"actor_id": account_id, "policy_id": policy_id, "is_new": is_new}
    shown = {"BATON_PRINCIPAL_ID": account_id} if issuer is None else {"BATON_TOKEN_FILE": "the file of its token"}
    session.show({**made, "environment": shown}, grant_lines(name, account_id, subject, is_new=is_new))


def find_or_make_account(client: "Baton", name: str) -> tuple[str, bool]:
    """Return the service account of this name, and whether it was made now."""
    for actor in client.every("list_actors", name=name):
        if actor.name == name and actor.status == "active":
            if actor.kind != "service_account":
                refuse(f"{name} is the name of another kind of actor ({actor.kind}); choose a name of its own.")
            return str(actor.actor_id), False
    return str(client.call("register_actor", name=name, kind="service_account").actor_id), True


def find_or_define_policy(client: "Baton", name: str, account_id: str) -> str:
    """Return the policy of a witness, which is defined where it is not there yet."""
    title = f"Witness {name}"[:200]
    for policy in client.every("list_policies", name=title):
        if policy.name == title:
            return str(policy.policy_id)
    defined = client.call(
        "define_policy",
        name=title,
        conduit_id=CONDUIT,
        surface_id=SURFACE,
        permitted_principal_ids=[account_id],
        permitted_commands=[*COMMANDS, *QUERIES],
    )
    return str(defined.policy_id)


def grant_lines(name: str, account_id: str, subject: str | None, *, is_new: bool) -> list[str]:
    """Return what a person reads: the account, and how the witness says that it is this one."""
    lines = [f"{name} {'may now witness runs' if is_new else 'may witness runs already'}: {account_id}"]
    if subject is not None:
        return [*lines, f"Tokens of {subject} act as it: put one into a file, and its name into BATON_TOKEN_FILE."]
    return [
        *lines,
        "Where the service requires tokens, your identity provider issues them: bind theirs with --issuer and --subject.",
        f"Where it requires none, the witness says who it is: BATON_PRINCIPAL_ID={account_id}",
    ]
