"""The check of everything beside Bluesky: the executors of plans, and the witnesses that gave word in the last day."""

from datetime import UTC, datetime

from baton.application.plan_settings import PlanExecutorKind
from baton.application.settings import Settings
from baton.cli.doctor import CheckResult, ok, warning, wrong
from baton.domain.recipe.offered_plans import PlanExecutorCatalogue
from baton.domain.step.plan_steps import HEARD_OF_LATE, KnownExecutor
from baton.infrastructure.postgres.pool import Connection

TESTED = {PlanExecutorKind.QUEUESERVER: "RE Manager v0.0.25", PlanExecutorKind.BLUEAPI: "1.5.0"}
"""The releases that the adapters are tested with; blueapi tells that of its REST API."""
COLUMNS = ("executor", "asked_at", "heard_at", "trouble", "version", "environment", "plans", "devices", "activity")
ROWS = f"SELECT {', '.join(COLUMNS)} FROM plan_executors WHERE executor = ANY(%s)"
LATE_SECONDS = 60.0  # a lag of a witness that is told as a fault
WITNESSES = """SELECT witness_id, count(*), max(lag_seconds) FILTER (WHERE heard_at > clock_timestamp() - interval '2 min'),
    sum(refused)::bigint, sum(dropped)::bigint, extract(epoch FROM clock_timestamp() - max(heard_at))::float8
FROM run_witness_contacts WHERE heard_at > clock_timestamp() - interval '1 day' GROUP BY witness_id ORDER BY 6"""


async def examine_bluesky(connection: Connection, settings: Settings) -> CheckResult:
    """Tell how the executors of Bluesky plans and the witnesses are doing, by what a worker and they have told last."""
    declared = {one.name: one for one in settings.plan_executors}
    found = await (await connection.execute(ROWS, [list(declared)])).fetchall() if declared else []
    rows = {row[0]: PlanExecutorCatalogue(**dict(zip(COLUMNS, row, strict=True))) for row in found}
    told, faults, doubts = list[str](), list[str](), list[str]()
    for name, executor in declared.items():
        fault, doubt, sentence = describe_executor(KnownExecutor(executor, rows.get(name)))
        (faults if fault else doubts if doubt else told).append(sentence)
    heard = await (await connection.execute(WITNESSES)).fetchall()
    for witness_id, *figures in heard:
        words, late = describe_witness(f"Witness {witness_id or 'of an earlier release'}", *figures)
        (doubts if late else told).append(words)
    if not heard:
        told.append("No witness gave word in the last day.")
    sentences = " ".join([*faults, *doubts, *told])
    return wrong(sentences) if faults else warning(sentences) if doubts else ok(sentences)


def describe_executor(known: KnownExecutor) -> tuple[bool, bool, str]:
    """Return whether an executor is at fault, whether something about it is doubtful, and the sentence about it."""
    declared, row = known.declared, known.catalogue
    if row is None or row.heard_at is None:
        why = "" if row is None or row.trouble is None else f" ({row.trouble})"
        return True, False, f"{declared.name} was never heard{why}; see that it runs at its address, and that a worker runs."
    age = datetime.now(UTC) - row.heard_at
    heard = f"{declared.name} ({row.version or declared.kind}) was heard {age.total_seconds():.0f} s ago"
    if row.trouble is not None or age > HEARD_OF_LATE:
        return True, False, f"{heard}, and then not any more: {row.trouble or 'no worker asks it'}; see that it runs."
    tested = TESTED.get(PlanExecutorKind(declared.kind)) if declared.kind in set(PlanExecutorKind) else None
    missing = sorted(plan for plan in declared.timeouts if plan not in row.plans)
    silent = sorted(plan for plan in declared.timeouts if plan in row.plans and known.touches(plan) is None)
    doubts = [
        *([f"its release is not the tested {tested}"] if tested is not None and row.version != tested else []),
        *(["no environment is open"] if row.environment is None else []),
        *([f"it does not offer {', '.join(missing)}"] if missing else []),
        *([f"nobody says what {', '.join(silent)} touches"] if silent else []),
    ]
    release = ["its release is tested"] if tested is not None and row.version == tested else []
    environment = [] if row.environment is None else [f"environment {row.environment}"]
    known_facts = [f"{len(row.plans)} plans in its catalogue", *release, *environment]
    return False, bool(doubts), f"{heard}: {'; '.join([*known_facts, *doubts])}."


def describe_witness(name: str, count: int, lag: float | None, refused: int, dropped: int, ago: float) -> tuple[str, bool]:
    """Return the sentence about a witness of the last day, and whether something was lost or is late."""
    words = f"{name} gave word of {count} run{'' if count == 1 else 's'} in the last day, the last {ago:.0f} s ago"
    parts = [*([] if lag is None else [f"{lag:.0f} s behind"]), f"{refused} documents refused", f"{dropped} dropped"]
    return f"{words}: {', '.join(parts)}.", bool(refused or dropped) or (lag is not None and lag > LATE_SECONDS)
