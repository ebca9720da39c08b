"""A night at the beamline, stage by stage: each does something over REST or MCP and looks whether it came out right."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from io import StringIO
from time import monotonic, sleep
from typing import Any

import h5py
import httpx

from baton.cli.catalog import load_catalog
from baton.demo import pictures
from baton.demo.beamline_processes import ADMINISTRATOR_ID, Hall
from baton.demo.beamline_records import Site, furnished
from baton.demo.narration import Teller
from baton.demo.optics import FOCUS_AT
from baton.demo.people import LOOK_INTERVAL, PATIENCE, Person, StageError, eventually
from baton.demo.permissions import Staff, staffed
from baton.demo.phantom import cut
from baton.demo.recipes import PROJECTIONS
from baton.demo.tomography import likeness

CENTRED = 0.5
"""Pixels by which a centred axis may be off."""
FOCUSED = 0.05
"""Millimetres by which a focused camera may be off."""
ALIKE = 0.95
"""How alike slice and sample must be at least."""
LOST_AT, KILLED_AT = 0.3, 0.6
"""How much of the scan is done when the beam is lost, and when the worker is killed."""
MORE = 0.02
"""How much more of the scan shows that it goes on."""
STILLNESS = 1.0
"""Seconds in which a conduct that stands does nothing."""
SCAN = "Projections"
View = dict[str, Any]


@dataclass
class Night:
    """Where the night stands: what was set up, and what came of it so far."""

    hall: Hall
    client: httpx.Client
    teller: Teller
    staff: Staff = field(init=False)
    site: Site = field(init=False)
    schedule_id: str = ""
    run_id: str = ""
    phases: dict[str, str] = field(default_factory=dict)

    @property
    def scientist(self) -> Person:
        return self.staff.scientist

    @property
    def request(self) -> dict[str, Any]:
        """The run that everything is about."""
        return {"name": "Bar 7, load step 1", "plan_id": self.site.plan_id, "subject_id": self.site.sample_id}

    def say(self, fact: str) -> None:
        self.teller.say(fact)

    def registered(self, recipe: str, **more: Any) -> str:
        """A procedure with the steps of a recipe, on the whole beamline."""
        asked = {"name": recipe, "kind": "tomography", "target_asset_ids": [self.site.unit_id], **more}
        return self.scientist.create(f"/recipes/{self.site.recipe_ids[recipe]}/procedures", asked)

    def conduct_of(self, phase: str) -> View:
        """Where the conduct of a phase of the run stands."""
        view: View = self.scientist.get(f"/procedures/{self.phases[phase]}/conduct")
        return view

    def watched(self, title: str, procedure_id: str) -> Iterator[View]:
        """Look at a conduct again and again, for as long as anything may take."""
        deadline = monotonic() + PATIENCE
        with self.teller.bar(title) as told:
            while monotonic() < deadline:
                view: View = self.scientist.get(f"/procedures/{procedure_id}/conduct")
                told(view["step_index"] or 0, view["step_count"] or 0, view["message"])
                yield view
                sleep(LOOK_INTERVAL)
        raise StageError(f"{title} stands at {view['message']!r} for too long")

    def gone_on(self, title: str, procedure_id: str, share: float) -> View:
        """Watch a conduct until so much of it is done; it must not have ended by then."""
        for view in self.watched(title, procedure_id):
            if view["result"] is not None:
                raise StageError(f"{title} should still go on; it came to {view['message']!r}: {view['result']['failure']}")
            if done(view) >= share:
                return view
        raise AssertionError("who watches gives up in time")

    def succeeded(self, title: str, procedure_id: str) -> View:
        """Watch a conduct to its end, which must be a good one; its result."""
        view = next(view for view in self.watched(title, procedure_id) if view["result"] is not None)
        result: View = view["result"]
        if not result["succeeded"] or result["closing_failures"]:
            raise StageError(f"{title} should succeed; it came to {view['message']!r}: {result['failure']}")
        return result


def furnish(night: Night) -> None:
    """Staff, catalog, beamline, clearances, recipes and the calendar, each put on record by whoever may."""
    night.staff = staffed(night.client, night.hall.provider, ADMINISTRATOR_ID)
    with redirect_stdout(StringIO()) as said, redirect_stderr(said):
        try:
            load_catalog(night.hall.url, night.staff.engineer.token)
        except SystemExit:
            raise StageError(said.getvalue()) from None
    night.say(f"the starter catalog: {said.getvalue().strip()}")
    night.site = furnished(night.staff, night.hall.data, night.hall.slice)
    round_of_the_hall = {
        "name": "Round of the hall",
        "calendar": {"cron": ["* * * * *"]},
        "target": {
            "kind": "ConductRecipe",
            "recipe_id": night.site.recipe_ids["Round of the hall"],
            "name": "Round of the hall, {fired_at}",
        },
    }
    night.schedule_id = night.scientist.create("/schedules", round_of_the_hall)
    refusal = night.scientist.refused(
        f"/clearances/{night.site.short_clearance_id}/expire", {"reason": "in the way"}, "UnauthorizedError"
    )
    night.say(f"{len(night.site.recipe_ids)} recipes, 2 clearances, 1 schedule; who may do what is enforced:")
    night.say(f"{night.scientist.name} tries to expire a clearance: {refusal['detail']}")


def refuse_unsearched(night: Night) -> None:
    """Nobody has searched the hutch, so nothing may start in it; preflight says so beforehand, start says the same."""
    verdict = night.scientist.post("/runs/preflight", night.request)
    closed = [gate for gate in verdict["gates"] if not gate["passed"]]
    refusal = night.scientist.refused("/runs", night.request, "RunRequiresPermittedEnclosureError")
    if verdict["passed"] or [gate["code"] for gate in closed] != [refusal["code"]]:
        raise StageError(f"preflight and start should be refused by the same gate; they say {closed} and {refusal}")
    night.say(f"{len(verdict['gates'])} gates were asked; one is closed, {closed[0]['gate']}:")
    night.say(f"{refusal['code']}: {refusal['detail']}")


def search(night: Night) -> None:
    """The search is completed at the hutch, the interlock says so, and the monitor puts it on record."""
    night.hall.search_the_hutch()
    path = f"/enclosures/{night.site.hutch_id}"
    eventually(lambda: night.scientist.get(path)["permit_status"] == "Permitted", PATIENCE, "the hutch is not permitted")
    verdict = night.scientist.post("/runs/preflight", night.request)
    if not verdict["passed"]:
        raise StageError(f"preflight should pass now; it says {[gate for gate in verdict['gates'] if not gate['passed']]}")
    night.say("the interlock permits the hutch, and preflight passes every gate")
    for caution in verdict["acknowledged_cautions"]:
        night.say(f"it draws attention to a {caution['severity'].lower()}: {caution['text_excerpt']}")


def centre(night: Night) -> None:
    """Darks and flats, then the rotation axis, pass by pass, until it is in the middle."""
    flats = night.registered("Darks and flats", bindings={"series": 0, "exposure": 0.02})
    night.scientist.post(f"/procedures/{flats}/conduct", {"wait": 0})
    night.succeeded("darks and flats", flats)
    loop = night.registered(
        "Centre the rotation axis", bindings={"exposure": 0.02}, max_consecutive_unconverged_iterations=8
    )
    criterion = {"kind": "within_tolerance", "expected": 0, "tolerance": CENTRED}
    asked = {"convergence_capture_name": "offset", "criterion": criterion, "wait": 0}
    night.scientist.post(f"/procedures/{loop}/converge", asked)
    result = night.succeeded("centring", loop)
    offsets = measured_offsets(night, loop)
    if len(offsets) != result["iteration_count"] or abs(offsets[-1]) > CENTRED or abs(offsets[0]) < 10:
        raise StageError(f"centring should go from far off to within {CENTRED} px; it went {offsets}")
    picture = night.hall.pictures / "centring.png"
    pictures.convergence(picture, offsets, CENTRED)
    night.say(f"offset in each pass: {', '.join(f'{offset:.2f}' for offset in offsets)} px")
    night.say(f"{picture}")


def measured_offsets(night: Night, procedure_id: str) -> list[float]:
    """What each pass found, from the record of what was done."""
    rows = night.scientist.rows(f"/procedures/{procedure_id}/activities")
    found = [one for row in rows for one in row["payload"].get("measurements", [])]
    return [one["value"] for one in found if one["name"] == "offset"]


def focus(night: Night) -> None:
    """An agent with an identity and permissions of its own asks for a search over MCP, and advises it to its end."""
    procedure_id = night.registered("Focus the camera", bindings={"exposure": 0.02})
    command = [sys.executable, "-m", "baton.demo.focus_agent", night.hall.url, procedure_id]
    identity = {**os.environ, "BATON_TOKEN": night.staff.agent_token}
    with subprocess.Popen(command, env=identity, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as agent:
        try:
            next(
                view
                for view in night.watched("focusing", procedure_id)
                if view["result"] is not None or agent.poll() is not None
            )
            advice, faults = agent.communicate(timeout=PATIENCE)
        finally:
            agent.kill()
    if agent.returncode:
        raise StageError(f"the agent gave up: {faults.strip()[-500:]}")
    night.succeeded("focusing", procedure_id)
    outcomes = (
        event["payload"]
        for event in night.scientist.rows(f"/procedures/{procedure_id}/history")
        if event["event_type"] == "ProcedureOutcomeRecorded"
    )
    looks = [(outcome["point"]["focus"], outcome["measurements"][0]["value"]) for outcome in outcomes]
    best = max(looks, key=lambda look: look[1])[0]
    if abs(best - FOCUS_AT) > FOCUSED or abs(looks[-1][0] - best) > FOCUSED:
        raise StageError(f"the camera should be left in focus at {FOCUS_AT} mm; the agent looked at {looks}")
    picture = night.hall.pictures / "focus.png"
    pictures.focus(picture, looks)
    night.say(f"{len(looks)} looks, advised by the agent one by one; {json.loads(advice.splitlines()[-1])['rationale']}")
    night.say(f"{picture}")


def begin(night: Night) -> None:
    """A run in a campaign, with three phases that are conducted one after the other."""
    series = {"name": "Alloy fatigue", "intent": "Series", "lead_actor_id": night.scientist.id}
    campaign_id = night.scientist.create("/campaigns", series)
    night.scientist.post(f"/campaigns/{campaign_id}/start")
    night.run_id = night.scientist.create("/runs", {**night.request, "campaign_id": campaign_id})
    night.phases = {
        phase: night.registered(phase, parent_run_id=night.run_id) for phase in ("Darks and flats", SCAN, "Reconstruct")
    }
    asked = {"procedure_ids": list(night.phases.values()), "wait": 0}
    night.scientist.post(f"/runs/{night.run_id}/conduct", asked)
    night.succeeded("darks and flats", night.phases["Darks and flats"])
    night.gone_on("projections", night.phases[SCAN], LOST_AT)
    night.say(f"darks and flats are taken, and {LOST_AT:.0%} of the projections")


def done(view: View) -> float:
    """How much of a conduct is done."""
    return float(view["step_index"] or 0) / view["step_count"] if view["step_count"] else 0.0


def lose_beam(night: Night) -> None:
    """The ring loses its beam: the monitor sees it, the supervisor holds the run, and nobody can resume it without beam."""
    begun = monotonic()
    night.hall.dump_the_beam()
    run = f"/runs/{night.run_id}"
    eventually(lambda: night.scientist.get(run)["status"] == "Held", PATIENCE, "nobody holds the run")
    night.say(f"the run is Held {monotonic() - begun:.1f} s after the beam was lost")
    decision = decided(night, "RunSupervision")
    if (decision["choice"], decision["inputs"]["run_id"]) != ("Hold", night.run_id):
        raise StageError(f"the supervisor should decide to hold this run; it decided {decision}")
    night.say(f"the supervisor's decision: {decision['choice']}: {decision['reasoning']}")
    refusal = night.scientist.refused(f"{run}/resume", {}, "RunSupplyCoverageMismatchError")
    night.say(f"resumed too early: {refusal['detail']}")


def decided(night: Night, context: str) -> View:
    """What an agent has decided in a context."""
    row = night.scientist.named("/decisions", context, "context")
    decision: View = night.scientist.get(f"/decisions/{row['decision_id']}")
    return decision


def take_up(night: Night) -> None:
    """The beam is back, and still nothing moves until a person has looked, restored the supply and resumed the run."""
    night.hall.refill_the_ring()
    ring = f"/supplies/{night.site.ring_id}"
    eventually(lambda: night.scientist.get(ring)["status"] == "Recovering", PATIENCE, "the ring does not recover")
    night.scientist.post(f"{ring}/restore", {"reason": "100 mA again, orbit looks good"})
    eventually(lambda: night.conduct_of(SCAN)["waiting_for"] == "run", PATIENCE, "the scan does not wait for its run")
    before = night.conduct_of(SCAN)
    sleep(STILLNESS)
    if night.conduct_of(SCAN)["step_index"] != before["step_index"]:
        raise StageError("the scan goes on although its run is held")
    night.scientist.post(f"/runs/{night.run_id}/resume")
    night.gone_on("projections", night.phases[SCAN], KILLED_AT)
    night.say(f"resumed by {night.scientist.name}; the scan went on from {done(before):.0%} and is at {KILLED_AT:.0%}")


def kill_worker(night: Night) -> None:
    """The worker dies in the middle of the scan; another takes the conduct up where it stood."""
    worker, begun = night.hall.worker, monotonic()
    night.hall.kill_the_worker()
    before = night.conduct_of(SCAN)
    night.gone_on("projections", night.phases[SCAN], done(before) + MORE)
    if night.hall.worker == worker:
        raise StageError("the scan goes on, but with the worker that was to be killed")
    night.say(f"killed at step {before['step_index']}; another worker was {MORE:.0%} on {monotonic() - begun:.1f} s later")


def complete(night: Night) -> None:
    """The scan comes to its end, the slice is made, the run is completed; the slice must look like the sample."""
    scan = night.succeeded("projections", night.phases[SCAN])
    night.succeeded("reconstruction", night.phases["Reconstruct"])
    run = f"/runs/{night.run_id}"
    eventually(lambda: night.scientist.get(run)["status"] == "Completed", PATIENCE, "the run is not completed")
    with h5py.File(night.hall.slice) as file:
        found, shadows, without_beam = file["slice"][()], file["shadows"][()], int(file.attrs["without_beam"])
    alike = likeness(found, cut())
    if len(shadows) + without_beam != PROJECTIONS:
        raise StageError(f"there are {len(shadows)} projections with beam and {without_beam} without, not {PROJECTIONS}")
    if not alike >= ALIKE:  # nothing is like a blank slice, not even a number
        raise StageError(f"the slice is like the sample by {alike:.3f} only")
    picture = night.hall.pictures / "slice.png"
    pictures.tomogram(picture, shadows, found, cut(), alike)
    night.say(
        f"{scan['completed_count']} steps, {PROJECTIONS} projections, {without_beam} of them without beam and left out"
    )
    night.say(f"likeness of slice and sample: {alike:.3f}")
    night.say(f"{picture}")


def debrief(night: Night) -> None:
    """The debriefer has read what happened and written it into the run's logbook."""
    path = f"/runs/{night.run_id}/logbook"

    def written() -> str | None:
        return next((entry["text"] for entry in night.scientist.rows(path) if entry["entry_kind"] == "Debrief"), None)

    for line in filter(None, eventually(written, PATIENCE, "there is no debrief").splitlines()):
        night.say(line)


def expire(night: Night) -> None:
    """The visitor's clearance has run out, and the expirer has taken it out of force."""
    path = f"/clearances/{night.site.short_clearance_id}"
    eventually(lambda: night.scientist.get(path)["status"] == "Expired", PATIENCE, "the clearance is still in force")
    decision = decided(night, "ClearanceExpiry")
    night.say(f"the expirer's decision: {decision['choice']}: {decision['reasoning']}")


def go_round(night: Night) -> None:
    """The calendar has fired, as the person who defined it, and the round was conducted."""

    def fired() -> dict[str, Any] | None:
        last = night.scientist.get(f"/schedules/{night.schedule_id}")["last_firings"]
        return next((firing for firing in last if firing["outcome"] == "Completed"), None)

    firing = eventually(fired, PATIENCE, "the schedule has not fired")
    night.say(f"the round of {firing['scheduled_at'][11:16]} UTC is {firing['outcome']}")


STAGES: list[tuple[str, Callable[[Night], None]]] = [
    ("The beamline is put on record, by whoever may", furnish),
    ("Preflight refuses a run in a hutch that nobody has searched", refuse_unsearched),
    ("The hutch is searched, and preflight passes", search),
    ("The rotation axis is centred until it converges", centre),
    ("An agent finds the focus over MCP", focus),
    ("A tomography run begins: darks, flats, projections", begin),
    ("The beam is lost, and the supervisor holds the run", lose_beam),
    ("The beam is back, and a person takes the run up", take_up),
    ("A worker is killed, and the conduct goes on", kill_worker),
    ("The run completes, and the slice shows the sample", complete),
    ("The debriefer writes down what happened", debrief),
    ("The expirer takes a clearance out of force", expire),
    ("The calendar has fired", go_round),
]
