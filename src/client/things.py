"""Things by their names: `b.plans["Tomography"]`, whose verbs are the operations on it, and collections of them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, tzinfo
from typing import TYPE_CHECKING, Any
from uuid import UUID

from baton.client import launching
from baton.client.exchanges import CallScript, list_operation
from baton.client.index import AGGREGATES, OPERATIONS, AggregateEntry
from baton.client.launching import Reference
from baton.client.notebook import data_frame, html_of
from baton.client.operation_call import OperationCall
from baton.client.points import Points, every_point
from baton.client.refusals import ClientError
from baton.client.watched_work import WatchedConduct, WatchedRunConduct
from baton.client.watching import Watching, conduct_frames, run_frames

if TYPE_CHECKING:
    from rich.console import Console

    from baton.client.spreadsheets import Table


@dataclass(frozen=True)
class Collection:
    """The things of one kind; what makes one is its method: `b.plans.define(...)`."""

    client: Any
    aggregate: AggregateEntry

    def __getitem__(self, reference: Reference) -> "Thing":
        """Return a thing by its name or id; it is looked for when it is first used."""
        return thing_of(self.client, self.aggregate, reference)

    def list(self, **filters: object) -> Any:
        """Yield the things that these filters let through, with what the list says of each."""
        return self.client.every_item(list_operation(self.aggregate), filters, self._listed_thing)

    def __iter__(self) -> Any:
        return self.list()

    def __aiter__(self) -> Any:
        return self.list()

    def _listed_thing(self, row: object) -> "Thing":
        return thing_of(self.client, self.aggregate, getattr(row, self.aggregate.id_name), row)

    def __getattr__(self, verb: str) -> Any:
        makers = self.aggregate.makers
        if verb not in makers:
            raise AttributeError(
                f"There is no {verb} for every {self.aggregate.label}; there is {', '.join(sorted(makers))}."
            )
        return OperationCall(self.client, OPERATIONS[makers[verb]])

    def __dir__(self) -> "Sequence[str]":
        return [*super().__dir__(), *self.aggregate.makers]

    def to_pandas(self, **filters: object) -> Any:
        """Return the things that these filters let through as a data frame of pandas."""
        return self.client.carry_out(self._data_frame(filters))

    def _data_frame(self, filters: Mapping[str, object]) -> CallScript[Any]:
        return data_frame((yield from self.client.session.rows(list_operation(self.aggregate), filters)))


@dataclass(frozen=True)
class Thing:
    """One thing, named by its name or id; `row` is what a list or the call that made it said of it."""

    client: Any
    aggregate: AggregateEntry
    reference: Reference
    row: Any = None

    @property
    def id(self) -> Any:
        """The id of the thing; it is looked for by its name where that is not known."""
        if isinstance(self.reference, UUID):
            return self.reference
        return self.client.carry_out(self._resolve())

    def history(self) -> Any:
        """Yield every event of the thing, oldest first."""
        operation = OPERATIONS[self.aggregate.verbs["get_history"]]
        return self.client.every_item(operation, {self.aggregate.id_name: self.reference})

    def _resolve(self) -> CallScript[UUID]:
        return self.client.session.id_of(self.aggregate.name, self.reference)  # type: ignore[no-any-return]

    def __getattr__(self, name: str) -> Any:
        verbs = self.aggregate.verbs
        if name in verbs:
            return OperationCall(self.client, OPERATIONS[verbs[name]], self.reference)
        if self.row is not None and hasattr(self.row, name):
            return getattr(self.row, name)
        raise AttributeError(f"A {self.aggregate.label} has no verb {name}; it has {', '.join(sorted(verbs))}.")

    def __dir__(self) -> Sequence[str]:
        return [*super().__dir__(), *self.aggregate.verbs, *(vars(self.row) if self.row is not None else ())]

    def __repr__(self) -> str:
        name = getattr(self.row, "name", None)
        return f"<{self.aggregate.label} {self.reference if name is None else f'{name!r}, {self.reference}'}>"

    def _repr_html_(self) -> str:
        return html_of(
            {"kind": self.aggregate.label, **(vars(self.row) if self.row is not None else {"named": self.reference})}
        )


class PlanThing(Thing):
    """A plan, from which runs start."""

    def start(
        self,
        *,
        name: str | None = None,
        subject: Reference | None = None,
        campaign: Reference | None = None,
        recipes: Sequence[Reference] | None = None,
        parameters: Mapping[str, Any] | None = None,
        dry_run: bool = False,
        **more_parameters: Any,
    ) -> Any:
        """Start a run and have its phases conducted; return the run. Parameters of the run are given by their names."""
        options = {"name": name, "subject_id": subject, "campaign_id": campaign}
        given = {**(parameters or {}), **more_parameters}
        session = self.client.session
        launch = launching.launch_plan(session, self.reference, recipes, options, given, dry_run=dry_run)
        return self.client.carry_out(launch if dry_run else self._start(launch))

    def _start(self, launch: CallScript[Any]) -> "CallScript[RunThing]":
        launched = yield from launch
        return RunThing(self.client, AGGREGATES["Run"], launched.run_id, launched)

    def preflight(
        self,
        *,
        name: str | None = None,
        subject: Reference | None = None,
        campaign: Reference | None = None,
        recipes: Sequence[Reference] | None = None,
        parameters: Mapping[str, object] | None = None,
        at: datetime | None = None,
        **more_parameters: object,
    ) -> Any:
        """Ask whether a run with these parameters could start now, and whether these recipes would overwrite data.

        With `at`, the answer has `conditions`: what would have to be true at that time.
        """
        options = {"name": name, "subject_id": subject, "campaign_id": campaign, "recipe_ids": recipes, "at": at}
        given = {**(parameters or {}), **more_parameters}
        return self.client.carry_out(launching.preflight_plan(self.client.session, self.reference, options, given))

    def rehearse(
        self,
        *,
        subject: Reference | None = None,
        recipes: Sequence[Reference] | None = None,
        parameters: Mapping[str, object] | None = None,
        at: object = None,
        start_from: str | None = None,
        assume: Mapping[str, object] | None = None,
        **more_parameters: object,
    ) -> Any:
        """Walk a run with these parameters on a twin of its signals: what would stop it, how far it moves, how long
        it takes; nothing moves."""
        given, how = {**(parameters or {}), **more_parameters}, {"at": at, "start_from": start_from, "assume": assume}
        options = {"subject_id": subject}
        exchange = launching.rehearse_plan(self.client.session, self.reference, recipes, options, given, how)
        return self.client.carry_out(exchange)


class RecipeThing(Thing):
    """A recipe, which procedures are made from."""

    def rehearse(
        self,
        *,
        on: Reference | Sequence[Reference] = (),
        parameters: Mapping[str, object] | None = None,
        at: object = None,
        start_from: str | None = None,
        assume: Mapping[str, object] | None = None,
        **more_parameters: object,
    ) -> Any:
        """Walk the recipe on a twin of its signals: what would stop it, how far it moves, how long it takes;
        nothing moves."""
        given, how = {**(parameters or {}), **more_parameters}, {"at": at, "start_from": start_from, "assume": assume}
        assets = [on] if isinstance(on, str | UUID) else on
        return self.client.carry_out(launching.rehearse_recipe(self.client.session, self.reference, assets, given, how))

    def conduct(
        self,
        *,
        on: Reference | Sequence[Reference],
        name: str | None = None,
        kind: str | None = None,
        parameters: Mapping[str, Any] | None = None,
        dry_run: bool = False,
        **more_parameters: Any,
    ) -> Any:
        """Register a procedure of the recipe on these assets and have it conducted; return the procedure. What the recipe
        leaves open is given by its name."""
        assets = [on] if isinstance(on, str | UUID) else on
        options, given = {"name": name, "procedure_kind": kind}, {**(parameters or {}), **more_parameters}
        session = self.client.session
        launch = launching.launch_recipe(session, self.reference, assets, options, given, dry_run=dry_run)
        return self.client.carry_out(launch if dry_run else self._conduct(launch))

    def _conduct(self, launch: CallScript[Any]) -> "CallScript[ProcedureThing]":
        launched = yield from launch
        return ProcedureThing(self.client, AGGREGATES["Procedure"], launched.procedure_ids[0], launched)


class ProcedureThing(Thing):
    """A procedure, whose conduct can be watched."""

    def points(self) -> Any:
        """Return what it measured at each place where it set its axes, a row for each."""
        return self.client.carry_out(self._points())

    def _points(self) -> CallScript[Points]:
        return (yield from every_point(self.client.session, [(yield from self._resolve())]))

    def watch(
        self, *, console: "Console | None" = None, lines: bool = False, plot: str | bool = False, table: bool = False
    ) -> Any:
        """Watch its latest conduct to its end: yields typed frames, and draws a bar in a terminal or notebook. `plot` adds
        the curve of its points, of "x:y" or, where it is True, what suits them, and `table` a line for each."""
        display = {"console": console, "lines": lines, "plot": plot, "table": table}
        return self.client.watch(self._frames(whole=table or plot is not False), WatchedConduct(), display)

    def _frames(self, *, whole: bool) -> Watching[Any]:
        session, procedure_id = self.client.session, (yield from self._resolve())
        begun = (
            (yield from session.call(OPERATIONS["get_procedure_conduct"], {"procedure_id": procedure_id})) if whole else None
        )
        from_id = None if begun is None or begun.conduct_id is None else f"{begun.conduct_id}:0"
        return (yield from conduct_frames(session, procedure_id, from_id))


class RunThing(Thing):
    """A run, whose conduct can be watched, and whose report is one page."""

    def report(self, *, names: bool = True, zip: bool = False) -> Any:
        """Return everything on record about it as one page, or as a zip with its tables; `names=False` leaves people out."""
        return self.client.carry_out(self._report({"names": names, "format": "zip" if zip else "html"}))

    def _report(self, asked: Mapping[str, object]) -> CallScript[Any]:
        run_id = yield from self._resolve()
        return (yield from self.client.session.call(OPERATIONS["get_run_report"], {"run_id": run_id, **asked}))

    def compare(self, other: Reference | None = None, *, baseline: str = "last_completed") -> Any:
        """Return what was different from another run or, where none is named, from the last of its plan that completed."""
        return self.client.carry_out(self._compare(other, baseline))

    def _compare(self, other: Reference | None, baseline: str) -> CallScript[Any]:
        session, asked = self.client.session, {"run_id": (yield from self._resolve()), "baseline": baseline}
        if other is not None:
            asked["with_run_id"] = yield from session.id_of(self.aggregate.name, other)
        return (yield from session.call(OPERATIONS["compare_runs"], asked))

    def points(self) -> Any:
        """Return what its phases measured at each place where they set their axes, a row for each."""
        return self.client.carry_out(self._points())

    def _points(self) -> CallScript[Points]:
        run_id = yield from self._resolve()
        view = yield from self.client.session.call(OPERATIONS["get_run_conduct"], {"run_id": run_id})
        begun = [phase.procedure_id for phase in view.phases if phase.conduct_id is not None]
        return (yield from every_point(self.client.session, begun))

    def watch(
        self, *, console: "Console | None" = None, lines: bool = False, plot: str | bool = False, table: bool = False
    ) -> Any:
        """Watch its latest conduct to its end: yields typed frames, and draws a bar in a terminal or notebook. `plot` adds
        the curve of its points, of "x:y" or, where it is True, what suits them, and `table` a line for each."""
        display = {"console": console, "lines": lines, "plot": plot, "table": table}
        return self.client.watch(self._frames(whole=table or plot is not False), WatchedRunConduct(), display)

    def _frames(self, *, whole: bool) -> Watching[Any]:
        return (yield from run_frames(self.client.session, (yield from self._resolve()), whole=whole))


class AssetThing(Thing):
    """An asset; the time of a beamline is that of its root."""

    def beam_time(self, since: datetime | None = None, until: datetime | None = None, *, by: str = "cause") -> Any:
        """Return where the time of a beamline went, of the last 24 hours where no range is given."""
        return self.client.carry_out(self._beam_time({"since": since, "until": until, "by": by}))

    def _beam_time(self, asked: Mapping[str, object]) -> CallScript[Any]:
        given = {name: value for name, value in asked.items() if value is not None}
        asset_id = yield from self._resolve()
        return (yield from self.client.session.call(OPERATIONS["get_beam_time"], {"asset_id": asset_id, **given}))


class QueueThing(Thing):
    """A queue, to which items are added from tables."""

    def add_from_table(
        self,
        table: "Table",
        *,
        plan: Reference | None = None,
        recipes: Sequence[Reference] | None = None,
        recipe: Reference | None = None,
        on: Reference | Sequence[Reference] = (),
        before: Reference | None = None,
        zone: tzinfo | None = None,
        dry_run: bool = False,
    ) -> Any:
        """Add an item for each row of a table, all or none, and return their ids: runs on a plan, or procedures of a recipe
        on assets. Columns are the parameters; times without a zone are on the clock of `zone`."""
        from baton.client import queue_items

        assets = [on] if isinstance(on, str | UUID) else on
        options = {"plan": plan, "recipes": recipes, "recipe": recipe, "assets": assets, "before": before, "zone": zone}
        add = queue_items.try_table if dry_run else queue_items.add_from_table
        return self.client.carry_out(add(self.client.session, self.reference, table, **options))


class ProposalThing(Thing):
    """A proposal; what is approved is what a look at it showed."""

    def look(self) -> Any:
        """Return the proposal with what its command would do now: `b.proposals[id].look().approve()`."""
        return self.client.carry_out(self._look())

    def _look(self) -> "CallScript[ProposalThing]":
        view = yield from self.client.session.call(OPERATIONS["get_proposal"], {"proposal_id": self.reference})
        return ProposalThing(self.client, self.aggregate, view.proposal_id, view)

    def approve(self, *, digest: str | None = None, **fields: object) -> Any:
        """Approve the proposal as it was shown, which takes a look at it or the digest of one."""
        shown = digest or getattr(self.row, "digest", None)
        if shown is None:
            raise ClientError("Look at the proposal before you approve it: what is approved is what `look()` shows.")
        return self.client.call_method(OPERATIONS["approve_proposal"], self.reference, digest=shown, **fields)


KINDS: dict[str, type[Thing]] = {
    "Asset": AssetThing,
    "Plan": PlanThing,
    "Procedure": ProcedureThing,
    "Proposal": ProposalThing,
    "Queue": QueueThing,
    "Recipe": RecipeThing,
    "Run": RunThing,
}


def thing_of(client: object, aggregate: AggregateEntry, reference: Reference, row: object = None) -> Thing:
    """Return a thing of this kind."""
    return KINDS.get(aggregate.name, Thing)(client, aggregate, reference, row)
