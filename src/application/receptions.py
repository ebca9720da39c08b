"""Receptions of what peers published: fetched once the permit is seen, checked and recorded while it still stands."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from baton.application.commands import execute_with_retry
from baton.application.long_work import TaskWork
from baton.application.ports import PeerClient
from baton.domain.federation import received_artifact as rules
from baton.domain.federation.received_artifact import ArtifactReference, ReceiveArtifact
from baton.domain.shared.tasks import Task


@dataclass
class Receptions(TaskWork):
    """Long work: an artifact is fetched from its publisher, checked and recorded with the verdict."""

    workflow = rules.RECEPTION
    command = ReceiveArtifact
    readable_with = "GetReceivedArtifact"
    peers: PeerClient

    async def carry_out(self, task: Task) -> Mapping[str, Any]:
        wanted, caller = ArtifactReference.model_validate(task.request), self.caller_of(task)
        reads = rules.reception_facts(wanted.source_facility_id, wanted.receipt_id, self.commands.clock())
        facts = await self.commands.read(reads, caller)
        if (recorded := rules.recorded_result(facts.earlier, task.work_id)) is not None:
            return recorded
        rules.required_permit(facts)
        document = await self.peers.fetch(facts.source.code, wanted.receipt_id, wanted.content_hash, wanted.uri)
        record = rules.RecordReception(reference=wanted, document=document.decode(), work_id=task.work_id)
        id = rules.artifact_id_of(wanted.source_facility_id, wanted.receipt_id)
        result = await execute_with_retry(self.commands, record, caller, new_id=id)
        assert result.body is not None, "a recorded reception tells its verdict"
        return result.body
