"""How a conduct is ended: the loop that gives the commands which the record leads to, for procedures and for runs."""

from collections.abc import Awaitable, Callable
from uuid import UUID

from baton.application.caller import Caller
from baton.application.commands import Commands, execute_with_retry
from baton.domain.conduct.end_decision import EndCommand, Ending, EndRecord, after_refusal, decide_end
from baton.domain.conduct.ends import EndEffect
from baton.domain.conduct.messages import ConductOutcome, ConductVerdict
from baton.domain.kernel import Command
from baton.domain.shared.refusals import Refusal, Unavailable

Seen = tuple[EndRecord, Callable[[EndCommand], Awaitable[Command]]]  # what the record says, and what makes the commands
Read = Callable[[ConductOutcome], Awaitable[Seen]]
Ended = tuple[ConductVerdict | None, ConductOutcome]  # done, or why there is no command (None: not shown); how it has ended


async def put_on_record(commands: Commands, caller: Caller, target_id: UUID, outcome: ConductOutcome, read: Read) -> Ended:
    """Give the commands that end a conduct, each as is decided from the record as it is then."""
    ending, refusal = Ending(outcome), None
    while True:
        record, command_for = await read(ending.outcome)
        if refusal is not None:
            ending, refusal = after_refusal(record, ending, refusal), None
        end = decide_end(record, ending)
        if not isinstance(end, EndCommand):
            return end, ending.outcome
        ending, command = end.ending, await command_for(end)
        try:
            if end.by_service:
                await execute_with_retry(commands, command, Caller.system(caller.correlation_id), target_id=target_id)
            else:
                await commands.execute(command, caller, target_id=target_id)
        except Refusal as refused:
            if end.leads_to is EndEffect.STAY or isinstance(refused, Unavailable):
                raise
            refusal = refused
        else:
            if end.leads_to is EndEffect.STAY or not record.of_run:
                return ConductVerdict.DONE, ending.outcome
