"""A night at the beamline, stage by stage: each stage does something over REST or MCP and checks its effect."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from datetime import datetime
from importlib import resources
from io import StringIO
from time import monotonic, sleep
from typing import Any
from uuid import UUID

import h5py

from baton.beamline.catalog import load_catalog
from baton.client.operations import (
    AttestationSweep,
    ConductResult,
    ConductView,
    DecisionView,
    ProcedureCreated,
    ProposalOutcome,
    QueueItemView,
)
from baton.client.refusals import NotFound
from baton.client.spreadsheets import read_table
from baton.client.watched_work import WatchedConduct
from baton.demo.beamline_processes import ADMINISTRATOR_ID, BeamlineProcesses
from baton.demo.beamline_records import PLAN, PROJECTIONS, STAGE, UNIT, BeamlineIds, register_beamline
from baton.demo.narration import Narrator, draw_convergence, draw_focus, draw_tomogram
from baton.demo.optics import FOCUS_AT, cross_section
from baton.demo.programs import file_path, likeness
from baton.demo.staff import WAIT_SECONDS, Staff, StaffMember, StageError, expect_refusal, register_staff, wait_for

CENTRED = 0.5  # pixels by which a centred axis may be off
FOCUSED = 0.05  # millimetres by which a focused camera may be off
LEAST_LIKENESS = 0.95
LOST_AT, KILLED_AT = 0.3, 0.6  # the share of the scan that is done when the beam is lost, and when the worker is killed
PROGRESS = 0.02  # the further share of the scan that shows that it continues
FLATS, SCAN, SLICE = PHASES = ("Darks and flats", "Projections", "Reconstruct")
RUN_FILES = ("darks", "flats", "scan", "slice")  # each in the name of one file of the run


@dataclass
class Night:
    processes: BeamlineProcesses
    narrator: Narrator
    staff: Staff = field(init=False)
    ids: BeamlineIds = field(init=False)
    schedule_id: UUID = field(init=False)
    queue_id: UUID = field(init=False)
    item_ids: list[UUID] = field(default_factory=list)
    run_id: UUID = field(init=False)
    phases: dict[str, UUID] = field(default_factory=dict)

    @property
    def scientist(self) -> StaffMember:
        return self.staff.scientist

    @property
    def run_request(self) -> dict[str, Any]:
        return {"name": "Bar 7, load step 1", "plan_id": self.ids.plan_id, "subject_id": self.ids.sample_id}

    def item(self, place: int) -> QueueItemView:
        """Return an item of the queue as it is now."""
        items: Iterator[QueueItemView] = self.scientist.every("list_queue_items", queue_id=self.queue_id)
        return next(item for item in items if item.item_id == self.item_ids[place])

    def phases_of(self, run_id: UUID) -> list[UUID]:
        """Return the procedures that a run of the queue conducts; none while it does not."""
        try:
            return [phase.procedure_id for phase in self.scientist.get_run_conduct(run_id).phases]
        except NotFound:
            return []

    def say(self, fact: str) -> None:
        self.narrator.say(fact)

    def register_procedure(self, recipe: str, **more: Any) -> UUID:
        request = {"name": recipe, "kind": "tomography", "target_asset_ids": [self.ids.unit_id], **more}
        registered: ProcedureCreated = self.scientist.register_procedure_from_recipe(recipe, **request)
        return registered.procedure_id

    def conduct_of(self, phase: str) -> ConductView:
        return self.scientist.get_procedure_conduct(self.phases[phase])

    def wait_for_status(self, look: Callable[[], object], status: str, otherwise: str) -> None:
        wait_for(lambda: look() == status, otherwise)

    def watch(self, title: str, procedure_id: UUID) -> Iterator[WatchedConduct]:
        """Yield the state of a conduct whenever it changes, for as long as anything may take."""
        deadline = monotonic() + WAIT_SECONDS
        watch = self.scientist.procedures[procedure_id].watch(console=self.narrator.console)
        for _ in watch:
            yield watch.work
            if monotonic() > deadline:
                raise StageError(f"{title} stands at {watch.work.line!r} for too long")

    def wait_for_share(self, title: str, procedure_id: UUID, share: float) -> None:
        """Watch a conduct until this share of it is done; raise StageError if it ends before."""
        for work in self.watch(title, procedure_id):
            if work.result is not None or (work.view is not None and work.view.result is not None):
                raise StageError(f"{title} should still go on; it came to {work.line!r}")
            if work.count and not work.closing and work.step_index / work.count >= share:
                return

    def wait_for_success(self, title: str, procedure_id: UUID) -> ConductResult:
        """Watch a conduct to its end and return its result, or raise StageError if it failed."""
        work = next(work for work in self.watch(title, procedure_id) if work.result is not None)
        result = work.result
        assert result is not None
        if not result.succeeded or result.closing_failures:
            raise StageError(f"{title} should succeed; it came to {work.line!r}: {result.failure}")
        return result


def share_done(view: ConductView) -> float:
    return (view.step_index or 0) / view.step_count if view.step_count else 0.0


def set_up(night: Night) -> None:
    night.staff = register_staff(night.processes.url, night.processes.provider, ADMINISTRATOR_ID)
    with redirect_stdout(StringIO()) as output, redirect_stderr(output):
        code = load_catalog(night.staff.engineer)
    if code:
        raise StageError(output.getvalue())
    night.say(f"the starter catalog: {output.getvalue().strip()}")
    night.ids = register_beamline(night.staff, night.processes.data)
    name = "Round of the hall"
    target = {"kind": "ConductRecipe", "recipe_id": night.ids.recipe_ids[name], "name": f"{name}, {{fired_at}}"}
    schedule = night.scientist.define_schedule(name=name, calendar={"cron": ["* * * * *"]}, target=target)
    night.schedule_id = schedule.schedule_id
    expire = night.scientist.clearances[night.ids.short_clearance_id].expire
    refusal = expect_refusal("UnauthorizedError", lambda: expire(reason="in the way"))
    night.say(f"{len(night.ids.recipe_ids)} recipes, 2 clearances, 1 schedule; who may do what is enforced:")
    night.say(f"{night.scientist.name} tries to expire a clearance: {refusal.detail}")


def refuse_unsearched(night: Night) -> None:
    verdict = night.scientist.preflight_run(**night.run_request)
    closed = [gate for gate in verdict.gates if not gate.passed]
    start = night.scientist.start_run
    refusal = expect_refusal("RunRequiresPermittedEnclosureError", lambda: start(**night.run_request))
    if verdict.passed or [gate.code for gate in closed] != [refusal.code]:
        raise StageError(f"preflight and start should be refused by the same gate; they say {closed} and {refusal}")
    night.say(f"{len(verdict.gates)} gates were asked; one is closed, {closed[0].gate}:")
    night.say(f"{refusal.code}: {refusal.detail}")


def search_hutch(night: Night) -> None:
    night.processes.put("PSS:B:SEARCH", 1)
    hutch = night.scientist.enclosures[night.ids.hutch_id]
    night.wait_for_status(lambda: hutch.get().permit_status, "Permitted", "the hutch is not permitted")
    verdict = night.scientist.preflight_run(**night.run_request)
    if not verdict.passed:
        raise StageError(f"preflight should pass now; it says {[gate for gate in verdict.gates if not gate.passed]}")
    night.say("the interlock permits the hutch, and preflight passes every gate")
    for caution in verdict.acknowledged_cautions:
        night.say(f"it draws attention to a {caution.severity.lower()}: {caution.text_excerpt}")


def centre_axis(night: Night) -> None:
    flats = night.register_procedure(FLATS, bindings={"series": 0, "exposure": 0.02})
    night.scientist.conduct_procedure(flats, wait=0)
    night.wait_for_success("darks and flats", flats)
    limit = {"max_consecutive_unconverged_iterations": 8}
    loop = night.register_procedure("Centre the rotation axis", bindings={"exposure": 0.02}, **limit)
    criterion = {"kind": "within_tolerance", "expected": 0, "tolerance": CENTRED}
    night.scientist.conduct_until_converged(loop, convergence_capture_name="offset", criterion=criterion, wait=0)
    result = night.wait_for_success("centring", loop)
    rows = night.scientist.every("list_procedure_activities", procedure_id=loop)
    measurements = [one for row in rows for one in row.payload.get("measurements", [])]
    offsets = [one["value"] for one in measurements if one["name"] == "offset"]
    if len(offsets) != result.iteration_count or abs(offsets[-1]) > CENTRED or abs(offsets[0]) < 10:
        raise StageError(f"centring should go from far off to within {CENTRED} px; it went {offsets}")
    picture = night.processes.pictures / "centring.png"
    draw_convergence(picture, offsets, CENTRED)
    night.say(f"offset in each pass: {', '.join(f'{offset:.2f}' for offset in offsets)} px")
    night.say(f"{picture}")


def find_focus(night: Night) -> None:
    procedure_id = night.register_procedure("Focus the camera", bindings={"exposure": 0.02})
    command = [sys.executable, "-m", "baton.demo.focus_agent", night.processes.url, str(procedure_id)]
    environment = {**os.environ, "BATON_TOKEN": night.staff.agent_token}
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as agent:
        try:
            approve_focusing(night, procedure_id)
            states = night.watch("focusing", procedure_id)
            next(work for work in states if work.result is not None or agent.poll() is not None)
            advice, faults = agent.communicate(timeout=WAIT_SECONDS)
        finally:
            agent.kill()
    if agent.returncode:
        raise StageError(f"the agent gave up: {faults.strip()[-500:]}")
    night.wait_for_success("focusing", procedure_id)
    events = night.scientist.procedures[procedure_id].history()
    outcomes = (event.payload or {} for event in events if event.event_type == "ProcedureOutcomeRecorded")
    looks = [(outcome["point"]["focus"], outcome["measurements"][0]["value"]) for outcome in outcomes]
    best = max(looks, key=lambda look: look[1])[0]
    if abs(best - FOCUS_AT) > FOCUSED or abs(looks[-1][0] - best) > FOCUSED:
        raise StageError(f"the camera should be left in focus at {FOCUS_AT} mm; the agent looked at {looks}")
    picture = night.processes.pictures / "focus.png"
    draw_focus(picture, looks)
    night.say(f"{len(looks)} looks, advised by the agent one by one; {json.loads(advice.splitlines()[-1])['rationale']}")
    night.say(f"{picture}")


def approve_focusing(night: Night, procedure_id: UUID) -> None:
    """See what the agent proposes, that its own approval would not count, and approve it."""
    scientist = night.scientist
    waiting = scientist.wait_for_row("list_proposals", status="Open")
    proposal = scientist.get_proposal(waiting.proposal_id)
    events = [event.event_type for event in proposal.would]
    if proposal.target_id != procedure_id or not proposal.may_approve or "ProcedureStarted" not in events:
        raise StageError(f"the agent should propose to conduct the procedure; it proposes {proposal}")
    if scientist.get_procedure(procedure_id).status != "Defined":
        raise StageError("the agent's conduct should not begin before anybody approved")
    outcome = scientist.proposals[waiting.proposal_id].approve(digest=proposal.digest, reason="go ahead, I am watching")
    if not isinstance(outcome, ProposalOutcome) or outcome.status != "CarriedOut":
        raise StageError(f"the agent's conduct should be carried out; it came to {outcome}")
    night.say(f"{proposal.command_name} waits for a second person; it would record {', '.join(dict.fromkeys(events))}")
    night.say(f"{scientist.name} approves, and the agent continues")


def fill_queue(night: Night) -> None:
    """Put the scans of a spreadsheet into the queue of the beamline, whose first one begins by itself."""
    scientist = night.scientist
    queue_id = scientist.open_queue(name=UNIT, asset_id=night.ids.unit_id).queue_id
    table = read_table("scans.csv", resources.files(__package__).joinpath("scans.csv").read_bytes())
    night.item_ids = scientist.queues[queue_id].add_from_table(table, plan=PLAN, recipes=PHASES)
    night.queue_id = queue_id
    night.run_id = wait_for(lambda: night.item(0).run_id, "the first scan of the queue does not begin")
    night.say(f"{len(night.item_ids)} scans were added, all or none; {night.item(0).title} has begun")
    night.say(f"its brightness over the angle grows on {night.processes.url}/console/runs/{night.run_id}")


def begin_run(night: Night) -> None:
    scientist = night.scientist
    campaign = scientist.register_campaign(name="Alloy fatigue", intent="Series", lead_actor_id=scientist.id)
    scientist.start_campaign(campaign.campaign_id)
    phases = wait_for(lambda: night.phases_of(night.run_id), "the run is not conducted")
    scientist.add_run_to_campaign(campaign.campaign_id, night.run_id)
    night.phases = dict(zip(PHASES, phases, strict=True))
    night.wait_for_success("darks and flats", night.phases[FLATS])
    night.wait_for_share("projections", night.phases[SCAN], LOST_AT)
    curve = night.scientist.list_procedure_points(night.phases[SCAN], limit=1)
    if (curve.x, curve.y, curve.values[0].unit) != ("bl7:rot", ("brightness",), "counts"):
        raise StageError(f"the page should plot the brightness over the angle; it plots {curve.y} over {curve.x}")
    night.say(f"darks and flats are taken, and {LOST_AT:.0%} of the projections")


def lose_beam(night: Night) -> None:
    begun = monotonic()
    night.processes.put("SR:BEAM", 1)
    run = night.scientist.runs[night.run_id]
    night.wait_for_status(lambda: run.get().status, "Held", "nobody holds the run")
    night.say(f"the run is Held {monotonic() - begun:.1f} s after the beam was lost")
    decision = find_decision(night, "RunSupervision")
    if (decision.choice, (decision.inputs or {}).get("run_id")) != ("Hold", str(night.run_id)):
        raise StageError(f"the supervisor should decide to hold this run; it decided {decision}")
    night.say(f"the supervisor's decision: {decision.choice}: {decision.reasoning}")
    refusal = expect_refusal("RunSupplyCoverageMismatchError", run.resume)
    night.say(f"resumed too early: {refusal.detail}")


def find_decision(night: Night, context: str) -> DecisionView:
    row = night.scientist.wait_for_row("list_decisions", context=context)
    return night.scientist.get_decision(row.decision_id)


def resume_run(night: Night) -> None:
    night.processes.put("SR:BEAM", 0)
    ring = night.scientist.supplies[night.ids.ring_id]
    night.wait_for_status(lambda: ring.get().status, "Recovering", "the ring does not recover")
    ring.restore(reason="100 mA again, orbit looks good")
    wait_for(lambda: night.conduct_of(SCAN).waiting_for == "run", "the scan does not wait for its run")
    before = night.conduct_of(SCAN)
    sleep(1.0)
    if night.conduct_of(SCAN).step_index != before.step_index:
        raise StageError("the scan continues although its run is held")
    night.scientist.resume_run(night.run_id)
    night.wait_for_share("projections", night.phases[SCAN], KILLED_AT)
    night.say(f"resumed by {night.scientist.name}; the scan went on from {share_done(before):.0%} and is at {KILLED_AT:.0%}")


def kill_worker(night: Night) -> None:
    worker, begun = night.processes.worker, monotonic()
    os.kill(worker, signal.SIGKILL)
    before = night.conduct_of(SCAN)
    night.wait_for_share("projections", night.phases[SCAN], share_done(before) + PROGRESS)
    if night.processes.worker == worker:
        raise StageError("the scan continues, but with the worker that was to be killed")
    seconds = monotonic() - begun
    night.say(f"killed at step {before.step_index}; another worker was {PROGRESS:.0%} on {seconds:.1f} s later")


def complete_run(night: Night) -> None:
    scan = night.wait_for_success("projections", night.phases[SCAN])
    night.wait_for_success("reconstruction", night.phases[SLICE])
    run = night.scientist.runs[night.run_id]
    night.wait_for_status(lambda: run.get().status, "Completed", "the run is not completed")
    [written] = night.scientist.get_procedure_files(night.phases[SLICE]).files
    with h5py.File(file_path(written.uri)) as file:
        found, shadows, without_beam = file["slice"][()], file["shadows"][()], int(file.attrs["without_beam"])
    alike = likeness(found, cross_section())
    if len(shadows) + without_beam != PROJECTIONS:
        raise StageError(f"there are {len(shadows)} projections with beam and {without_beam} without, not {PROJECTIONS}")
    if not alike >= LEAST_LIKENESS:  # the likeness of a blank slice is not a number
        raise StageError(f"the slice is like the sample by {alike:.3f} only")
    picture = night.processes.pictures / "slice.png"
    draw_tomogram(picture, shadows, found, cross_section(), alike)
    steps = scan.completed_count
    night.say(f"{steps} steps, {PROJECTIONS} projections, {without_beam} of them without beam and left out")
    night.say(f"likeness of slice and sample: {alike:.3f}")
    night.say(f"{picture}")


def follow_data(night: Night) -> None:
    """See that every file of the run is a dataset, have the copies checked, and draw where the slice comes from."""
    scientist = night.scientist
    found: dict[str, UUID] = {}

    def find_datasets() -> bool:
        for phase in night.phases.values():
            files = scientist.get_procedure_files(phase).files
            known = [(file.name, file.dataset_id) for file in files if file.dataset_id is not None]
            found.update({kind: id for name, id in known for kind in RUN_FILES if kind in name})
        return len(found) == len(RUN_FILES)

    wait_for(find_datasets, f"not all of {', '.join(RUN_FILES)} are datasets")
    result = scientist.get_dataset(found["slice"])
    if str(night.run_id)[-12:] not in result.uri:
        raise StageError(f"the slice should be named by its run; it is {result.uri}")
    if list(result.derived_from) != [found["scan"]] or result.subject_id != night.ids.sample_id:
        raise StageError(f"the slice should be derived from the scan of the sample; the record says {result}")
    night.say(f"registered by themselves: {', '.join(sorted(found))}; the slice is derived from the scan")
    checked = scientist.attest_distributions(wait=60)
    if not isinstance(checked, AttestationSweep) or (checked.match_count, checked.mismatch_count) != (len(found), 0):
        raise StageError(f"the bytes of {len(found)} copies should be as they were registered; the check says {checked}")
    night.say(f"the bytes of {checked.match_count} copies were read again: each has its checksum")
    promote = scientist.datasets[found["darks"]].promote
    refusal = expect_refusal("DatasetCannotPromoteError", lambda: promote(reason="low noise"))
    night.say(f"{scientist.name} promotes the darks: {refusal.detail}")
    picture = night.processes.pictures / "lineage.svg"
    picture.write_bytes(scientist.get_dataset_provenance_picture(found["slice"]).content)
    night.say(f"{picture}")


def read_debrief(night: Night) -> None:
    debrief = night.scientist.wait_for_row("list_run_logbook_entries", run_id=night.run_id, entry_kind="Debrief")
    for line in filter(None, debrief.text.splitlines()):
        night.say(line)


def change_sample(night: Night) -> None:
    """See the next scan wait for its sample, mount it, and see the scan begin by itself; then end it for tonight."""
    scientist = night.scientist
    night.wait_for_status(lambda: night.item(1).status, "Blocked", "the next scan does not wait for its sample")
    night.say(f"{night.item(1).title} waits: {night.item(1).detail}")
    scientist.dismount_subject(night.ids.sample_id, reason="measured")
    scientist.mount_subject(night.ids.next_sample_id, asset_id=STAGE, reason="the next one")
    begun = monotonic()
    run_id = wait_for(lambda: night.item(1).run_id, "the next scan does not begin")
    wait_for(lambda: night.phases_of(run_id), "the next run is not conducted")
    night.say(f"its sample is mounted, and it began by itself within {monotonic() - begun:.1f} s")
    scientist.stop_run(run_id, reason="enough for tonight")
    queue = scientist.queues[night.queue_id]
    night.wait_for_status(lambda: queue.get().status, "Held", "the queue continues after a scan that was stopped")
    night.say(f"{scientist.name} stops it, and the queue is Held: {queue.get().last_status_reason}")


def see_clearance_expire(night: Night) -> None:
    clearance = night.scientist.clearances[night.ids.short_clearance_id]
    night.wait_for_status(lambda: clearance.get().status, "Expired", "the clearance is still in force")
    decision = find_decision(night, "ClearanceExpiry")
    night.say(f"the expirer's decision: {decision.choice}: {decision.reasoning}")


def see_schedule_fire(night: Night) -> None:
    def find() -> datetime | None:
        last = night.scientist.get_schedule(night.schedule_id).last_firings
        return next((firing.scheduled_at for firing in last if firing.outcome == "Completed"), None)

    fired_at = wait_for(find, "the schedule has not fired")
    night.say(f"the round of {fired_at:%H:%M} UTC is Completed")


STAGES: list[tuple[str, Callable[[Night], None]]] = [
    ("The beamline is put on record", set_up),
    ("Preflight refuses a run in a hutch that nobody has searched", refuse_unsearched),
    ("The hutch is searched, and preflight passes", search_hutch),
    ("The rotation axis is centred until it converges", centre_axis),
    ("An agent proposes to find the focus, and does once approved", find_focus),
    ("A spreadsheet fills the queue, and its first scan begins", fill_queue),
    ("The tomography run takes darks, flats and projections", begin_run),
    ("The beam is lost, and the supervisor holds the run", lose_beam),
    ("The beam is back, and a person resumes the run", resume_run),
    ("A worker is killed, and the conduct continues", kill_worker),
    ("The run completes, and the slice shows the sample", complete_run),
    ("The files of the run are datasets, checked and related", follow_data),
    ("The debriefer writes down what happened", read_debrief),
    ("The next sample is mounted, and its scan begins by itself", change_sample),
    ("The expirer takes a clearance out of force", see_clearance_expire),
    ("The calendar has fired", see_schedule_fire),
]
