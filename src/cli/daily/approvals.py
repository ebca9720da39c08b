"""`proposals`, `approve`, `reject` and `withdraw`: commands that wait for the approval of a second person."""

from collections.abc import Iterator
from typing import Annotated, Any

from typer import Argument, Option, Typer

from baton.cli.daily.session import ServiceSession, service_command
from baton.cli.daily.steering import Reason
from baton.cli.daily.tables import table_lines, value_text
from baton.cli.messages import REFUSED

app = Typer()
ProposalId = Annotated[str, Argument(metavar="ID", help="A proposal, as `baton proposals` lists it.")]
NeededReason = Annotated[str, Option("--reason", "-m", help="Why, for the record.")]
OPEN = "Open"
HEAD = ("COMMAND", "ABOUT", "BY", "STATUS", "UNTIL", "ID")


@service_command(app, "proposals")
def list_proposals(
    session: ServiceSession, everything: Annotated[bool, Option("--all", help="Those that are closed too.")] = False
) -> None:
    """List the commands that wait for the approval of a second person, your own first."""
    own_id = session.client.call("get_my_access").principal_id
    wanted = {} if everything else {"status": OPEN}
    found = list(session.client.every("list_proposals", include="names", **wanted))
    found.sort(key=lambda one: one.proposed_by != own_id)
    session.show(found, table_lines(HEAD, [proposal_row(one, own_id) for one in found], "Nothing waits for approval."))


def proposal_row(proposal: Any, own_id: Any) -> tuple[Any, ...]:
    """Return one line of the list of proposals."""
    name = getattr(proposal, "proposed_by_name", None) or proposal.proposed_by
    by = "you" if proposal.proposed_by == own_id else name
    carried = proposal.approved_by is not None and proposal.status == OPEN
    status = "being carried out" if carried else proposal.status
    return proposal.command_name, proposal.target_id, by, status, proposal.expires_at, proposal.proposal_id


@service_command(app)
def approve(session: ServiceSession, proposal: ProposalId, reason: Reason = None) -> None:
    """Approve a proposed command and have it carried out as its proposer; exits with 1 where it is refused then."""
    given: dict[str, Any] = {} if reason is None else {"reason": reason}
    outcome = session.client.call("approve_proposal", proposal_id=proposal, **given)
    session.show(outcome, outcome_lines(outcome))
    if getattr(outcome, "refusal", None) is not None:
        raise SystemExit(REFUSED)


def outcome_lines(outcome: Any) -> Iterator[str]:
    """Yield what came of an approval."""
    if not hasattr(outcome, "status"):
        yield f"Approved; it is still being carried out. Ask again with: baton call get_work work_id={outcome.work_id}"
    elif outcome.refusal is not None:
        cause = outcome.refusal.get("reason")
        yield f"Approved, and refused when it was given: {outcome.refusal['detail']}" + (f" [{cause}]" if cause else "")
    else:
        said = ", ".join(f"{name} {value_text(value)}" for name, value in (outcome.answer or {}).items())
        yield "Approved and carried out" + (f": {said}" if said else ".")


@service_command(app)
def reject(session: ServiceSession, proposal: ProposalId, reason: NeededReason) -> None:
    """Do not approve a proposed command; its proposer learns the reason."""
    close(session, "reject_proposal", proposal, reason, "Rejected")


@service_command(app)
def withdraw(session: ServiceSession, proposal: ProposalId, reason: NeededReason) -> None:
    """Take back a command that you proposed."""
    close(session, "withdraw_proposal", proposal, reason, "Withdrawn")


def close(session: ServiceSession, operation: str, proposal: str, reason: str, status: str) -> None:
    """Close a proposal, and say so."""
    session.client.call(operation, proposal_id=proposal, reason=reason)
    session.show({"proposal_id": proposal, "status": status}, [f"{status}: {proposal}"])
