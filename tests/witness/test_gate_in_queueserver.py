"""A queueserver whose RunEngine has the gate as a preprocessor: its plan waits while its run is Held, and completes."""

import asyncio
import time
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.support.api.rest_beamline import beamline
from tests.support.service import running_api
from tests.support.waiting import until
from tests.support.witness.outside import queueserver

pytestmark = [pytest.mark.server, pytest.mark.soak]
PLANS = (Path(__file__).parents[1] / "support/witness/gated_plans.py").read_text()
ENGINE = "\nfrom bluesky import RunEngine\nRE = RunEngine({})\nRE.preprocessors.append(gate)\n"


async def test_f11_a_held_scan_waits_in_queueserver_and_its_item_completes(database_url: str, tmp_path: Path) -> None:
    log = tmp_path / "documents"
    startup = PLANS.replace("@gate.gated\n", "") + ENGINE
    async with running_api(database_url) as api:
        line = await beamline(api)
        account = await api.create("/actors", {"name": "Bluesky at BL7", "kind": "service_account"})
        told = {"GATE_SERVICE": api.base_url, "GATE_PLAN": line.plan_id, "GATE_DOCUMENTS": str(log)}
        server = queueserver(tmp_path, startup, BATON_PRINCIPAL_ID=account, **told)
        link = await asyncio.to_thread(server.__enter__)

        def documents(name: str) -> list[list[str]]:
            """Return the time, uid and exit status of each document of a kind."""
            lines = log.read_text().splitlines() if log.exists() else []
            return [line.split()[1:] for line in lines if line.startswith(f"{name} ")]

        try:
            item = {"item_type": "plan", "name": "gated_steps", "kwargs": {"num": 40}}
            asked = {"item": item, "user": "test", "user_group": "primary"}
            begun = await asyncio.to_thread(lambda: link.ask("queue_item_execute", **asked))
            assert begun.get("success"), begun
            [[began, uid, _]] = await until(lambda: documents("start"), 60)
            began_at = datetime.fromtimestamp(float(began), UTC).isoformat()
            said = {"document_uid": uid, "plan_id": line.plan_id, "name": "gated_steps", "began_at": began_at}
            answer = await api.acting_as(account).post("/runs/witness", {**said, "holdable": True})
            run_id = answer.json()["run_id"]
            await api.execute(f"/runs/{run_id}/hold", {"reason": "the beam is weak"})
            await until(lambda: documents("event") and time.time() - float(documents("event")[-1][0]) > 1, 60)
            status = await asyncio.to_thread(link.ask, "status")
            assert (status["re_state"], status["manager_state"]) == ("running", "executing_queue")
            await api.execute(f"/runs/{run_id}/resume", {})
            await until(lambda: documents("stop"), 60)
            assert (len(documents("event")), documents("stop")[-1][2]) == (40, "success")

            async def is_over() -> bool:
                return bool((await asyncio.to_thread(link.ask, "history_get"))["items"])

            await until(is_over, 60)
            [ended] = (await asyncio.to_thread(link.ask, "history_get"))["items"]
            assert ended["result"]["exit_status"] == "completed"
        finally:
            await asyncio.to_thread(server.__exit__, None, None, None)
