"""A run as an RO-Crate: the crate that comes with the tables of its report says what was done, with what, on what, and what
came of it, in the terms of the Process Run Crate profile. Data files stand in it by address and checksum."""

from collections.abc import Iterator, Mapping
from typing import Any

from baton.domain.data.manifest import RO_CRATE
from baton.domain.data.values import ChecksumAlgorithm
from baton.domain.kernel import instant
from baton.domain.run.run import RunStatus
from baton.domain.views.run_report import RunReport

PROFILE = "https://w3id.org/ro/wfrun/process/0.5"
METADATA = "ro-crate-metadata.json"
PLACE: Mapping[RunStatus, str] = {
    RunStatus.RUNNING: "ActiveActionStatus",
    RunStatus.HELD: "ActiveActionStatus",
    RunStatus.COMPLETED: "CompletedActionStatus",
    RunStatus.STOPPED: "CompletedActionStatus",
    RunStatus.ABORTED: "FailedActionStatus",
    RunStatus.TRUNCATED: "FailedActionStatus",
}
"""How an action is called in schema.org, by the status of its run."""
UNLICENSED = "No license was given; ask the publisher before you use this."
Entity = dict[str, Any]


def run_crate(report: RunReport, files: Mapping[str, str]) -> Entity:
    """Return the metadata of a crate with these files, whose media types are by their names."""
    run = report.run
    publisher = {"@id": f"#facility-{report.facility_code}"}
    parts = [{"@id": name} for name in files] + [{"@id": one.dataset.uri} for one in report.datasets]
    day = (run.ended_at or report.so_far or run.created_at).date().isoformat()
    root: Entity = {
        "@id": "./",
        "@type": "Dataset",
        "name": f"Report of the run {run.name}",
        "description": f"Everything on record about the run {run.name}, which is {run.status.value}.",
        "datePublished": day,
        "license": UNLICENSED,
        "publisher": publisher,
        "conformsTo": {"@id": PROFILE},
        "identifier": f"urn:uuid:{run.id}",
        "hasPart": parts,
        "mentions": {"@id": "#run"},
    }
    about: Entity = {"@id": METADATA, "@type": "CreativeWork", "about": {"@id": "./"}, "conformsTo": {"@id": RO_CRATE}}
    graph = [
        about,
        root,
        {"@id": PROFILE, "@type": "CreativeWork", "name": "Process Run Crate", "version": "0.5"},
        {**publisher, "@type": "Organization", "name": report.publisher, "identifier": report.facility_code},
        _action(report),
        *_instruments(report),
        *_objects(report),
        *_people(report),
        *({"@id": name, "@type": "File", "name": name, "encodingFormat": media} for name, media in files.items()),
        *_datasets(report),
    ]
    return {"@context": f"{RO_CRATE}/context", "@graph": graph}


def _action(report: RunReport) -> Entity:
    """Return the run as an action: by whom, with what, on what, and with which result."""
    run = report.run
    named = report.shows_people and run.started_by_name is not None
    agent = f"urn:uuid:{run.started_by}" if named else f"#facility-{report.facility_code}"
    action: Entity = {
        "@id": "#run",
        "@type": "CreateAction",
        "name": run.name,
        "identifier": f"urn:uuid:{run.id}",
        "startTime": instant(run.started_at),
        "actionStatus": {"@id": f"http://schema.org/{PLACE[run.status]}"},
        "agent": {"@id": agent},
        "instrument": [{"@id": one["@id"]} for one in _instruments(report)],
        "object": [{"@id": one["@id"]} for one in _objects(report)],
        "result": [{"@id": one.dataset.uri} for one in report.datasets],
    }
    if run.ended_at is not None:
        action["endTime"] = instant(run.ended_at)
    if run.end_reason is not None and PLACE[run.status] == "FailedActionStatus":
        action["error"] = run.end_reason
    return action


def _instruments(report: RunReport) -> Iterator[Entity]:
    """Yield what the run was done with: its plan, and the recipes of its phases in their versions."""
    run, known = report.run, set[str]()
    yield {"@id": f"urn:uuid:{run.plan_id}", "@type": ["SoftwareApplication", "HowTo"], "name": report.label(run.plan_id)}
    for phase in report.phases:
        if phase.recipe_id is None:
            continue
        version = phase.recipe_version or "unversioned"
        id = f"urn:uuid:{phase.recipe_id}#{version}"
        if id not in known:
            known.add(id)
            name = report.label(phase.recipe_id)
            yield {"@id": id, "@type": ["SoftwareApplication", "HowTo"], "name": name, "softwareVersion": version}


def _objects(report: RunReport) -> Iterator[Entity]:
    """Yield what the run was done on: its sample, and the calibrations that it had pinned."""
    run = report.run
    if run.subject_id is not None:
        yield {"@id": f"urn:uuid:{run.subject_id}", "@type": "Thing", "name": report.label(run.subject_id)}
    for one in report.calibrations:
        revision = one.revision
        yield {
            "@id": f"urn:uuid:{revision.revision_id}",
            "@type": "CreativeWork",
            "name": f"Calibration: {one.calibration.quantity.value}",
            "dateCreated": instant(revision.established_at),
            "text": ", ".join(f"{name} {value}" for name, value in sorted(revision.value.items())),
        }


def _people(report: RunReport) -> Iterator[Entity]:
    """Yield who began the run, where people are named."""
    run = report.run
    if report.shows_people and run.started_by_name is not None:
        yield {"@id": f"urn:uuid:{run.started_by}", "@type": "Person", "name": run.started_by_name}


def _datasets(report: RunReport) -> Iterator[Entity]:
    """Yield the datasets that the run left, by their addresses."""
    for one in report.datasets:
        dataset = one.dataset
        checksum = {"sha256": dataset.checksum.value} if dataset.checksum.algorithm is ChecksumAlgorithm.SHA256 else {}
        yield {
            "@id": dataset.uri,
            "@type": "File",
            "name": dataset.name,
            "identifier": dataset.external_id or f"urn:uuid:{dataset.id}",
            "contentSize": str(dataset.byte_size),
            "encodingFormat": dataset.encoding.media_type,
            **checksum,
        }
