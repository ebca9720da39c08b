"""Calls that mypy refuses, each marked; nothing here is run."""

from baton.client import AsyncBaton, Baton


def call_wrongly(b: Baton) -> None:
    b.hold_run("Load step 1", resaon="typed wrongly")  # wrong
    b.hold_run()  # wrong
    b.list_runs(status="Runing")  # wrong
    b.start_run(name="Load step 1")  # wrong
    print(b.get_run("Load step 1").statsu)  # wrong
    b.no_such_operation()  # wrong
    b.register_asset(name="Stage", tier="Device", parent_id=7)  # wrong
    b.runs["Load step 1"].hold(resaon="typed wrongly")  # wrong
    print(b.plans["Tomography"].start(exposure=0.02).watch().result().no_such_member)  # wrong


async def await_wrongly(b: AsyncBaton) -> None:
    print((await b.get_run("Load step 1")).statsu)  # wrong
    print(b.get_run("Load step 1").status)  # wrong
    await b.runs["Load step 1"].hold(resaon="typed wrongly")  # wrong
