"""`proposals`, `approve`, `reject` and `withdraw`: commands that wait for the approval of a second person."""

from collections.abc import Iterator
from typing import Annotated, Any

from typer import Argument, Option, Typer

from baton.cli.daily.session import ServiceSession, require_consent, service_command
from baton.cli.daily.steering import Reason
from baton.cli.daily.tables import table_lines, value_text
from baton.cli.messages import REFUSED

app = Typer()
ProposalId = Annotated[str, Argument(metavar="ID", help="A proposal, as `baton proposals` lists it.")]
NeededReason = Annotated[str, Option("--reason", "-m", help="Why, for the record.")]
OPEN = "Open"
NOT_SHOWN = "0" * 64  # the digest of nothing
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
def approve(
    session: ServiceSession,
    proposal: ProposalId,
    reason: Reason = None,
    digest: Annotated[str | None, Option("--digest", help="What you looked at, by the digest that was shown.")] = None,
    yes: Annotated[bool, Option("--yes", "-y", help="Approve what is shown without being asked.")] = False,
) -> None:
    """Show a proposed command, and approve it as it is shown; exits with 1 where it is refused then, or has changed."""
    shown = digest or look(session, proposal, yes)
    given: dict[str, Any] = {} if reason is None else {"reason": reason}
    outcome = session.client.call("approve_proposal", proposal_id=proposal, digest=shown, **given)
    session.show(outcome, outcome_lines(outcome))
    if getattr(outcome, "refusal", None) is not None:
        raise SystemExit(REFUSED)


def look(session: ServiceSession, proposal: str, yes: bool) -> str:
    """Show what a proposed command would do, and return the digest of that once the person wants it."""
    view = session.client.call("get_proposal", proposal_id=proposal, include="names")
    if not session.as_json:
        session.show(view, view_lines(view))
    if view.digest is None:  # it is closed, or not theirs to see: the service says which
        return NOT_SHOWN
    require_consent(session, "Approve it?", str(view.digest), yes)
    return str(view.digest)


def view_lines(view: Any) -> Iterator[str]:
    """Yield a proposal as its approver reads it: the command, whose it is, its fields, and what it would record now."""
    by = getattr(view, "proposed_by_name", None) or view.proposed_by
    yield f"{view.command_name}, proposed by {by}, about {value_text(view.target_id)}: {view.proposal_id}"
    for name, value in (view.request or {}).items():
        yield f"  {name} {value_text(value)}"
    for one in view.differs:
        yield f"It was approved, and had changed before it was carried out: {one.place} was {one.was} and is {one.now}"
    if view.rehearsal is None:
        return
    if view.rehearsal.refusal is not None:
        yield f"It would be refused now: {view.rehearsal.refusal['detail']}"
    for event in view.rehearsal.would or ():
        yield f"It would record {event.event_type}"
        for name, value in event.payload.items():
            if name != "occurred_at":
                yield f"  {name} {value_text(value)}"


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
