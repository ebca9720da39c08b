"""The workflow of tasks: one activity carries a task out, however often it has to be begun."""

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from baton.domain.shared.tasks import TaskRequest
    from baton.workflows.activity_calls import call_waiting_activity
    from baton.workflows.activity_stubs import ActivityStubs as Stubs


@workflow.defn(name="task")
class TaskWorkflow:
    """Has a task carried out; everything that is known of it is on the record."""

    @workflow.run
    async def run(self, request: TaskRequest) -> None:
        await call_waiting_activity(Stubs.carry_out_task, request, request.kind)
