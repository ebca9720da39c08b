"""Uses the client that openapi-python-client wrote: arguments are its directory, the service and what to start."""

import json
import sys
from uuid import UUID

directory, address, asked = sys.argv[1:]
sys.path.insert(0, directory)

from baton_client import Client  # noqa: E402
from baton_client.api.run import get_run, hold_run, list_runs, resume_run, start_run  # noqa: E402
from baton_client.models import HoldRunRequest, Order, ResumeRunRequest, StartRunRequest  # noqa: E402

with Client(base_url=address) as client:
    tried = start_run.sync(client=client, body=StartRunRequest.from_dict(json.loads(asked)), prefer="handling=dry-run")
    made = start_run.sync(client=client, body=StartRunRequest.from_dict(json.loads(asked)), idempotency_key="once")
    again = start_run.sync(client=client, body=StartRunRequest.from_dict(json.loads(asked)), idempotency_key="once")
    run_id = UUID(str(made.run_id))
    held = hold_run.sync_detailed(run_id, client=client, body=HoldRunRequest(reason="beam dump"))
    refused = hold_run.sync(run_id, client=client, body=HoldRunRequest(reason="beam dump"))
    position = int(held.headers["X-Baton-Position"])
    listed = list_runs.sync(client=client, min_position=position, order=Order.DESC, limit=5)
    shown = get_run.sync(run_id, client=client)
    resumed = resume_run.sync_detailed(run_id, client=client, body=ResumeRunRequest())
    print(
        json.dumps(
            {
                "would": [event.event_type for event in tried.would],
                "repeated": str(again.run_id) == str(run_id),
                "held": held.status_code,
                "refused": [refused.code, refused.reason],
                "listed": str(run_id) in [str(item.run_id) for item in listed.items],
                "status": str(shown.status),
                "resumed": resumed.status_code,
            }
        )
    )
