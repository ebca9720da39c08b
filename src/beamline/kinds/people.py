"""Who works here and what they may do: actors, agents with their settings, groups, policies, schedules, queues."""

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any

from baton.beamline.file import (
    ActorEntry,
    AgentEntry,
    ApprovalEntry,
    BudgetEntry,
    GroupEntry,
    PolicyEntry,
    QueueEntry,
    ScheduledRecipe,
    ScheduledRun,
    ScheduleEntry,
)
from baton.beamline.kinds.kind import (
    REASON,
    Names,
    Obstacle,
    RecordedThing,
    Ref,
    Section,
    Step,
    UnnamedError,
    Update,
    members_changed,
    path_of,
    plain,
    refs,
    shown_change,
    without_none,
)
from baton.domain.access.actor import DELETED_USER, SEEDED_ACTOR_IDS, SEEDED_AGENT_IDS, ActorKind
from baton.domain.agent.prompts import PROMPTS
from baton.domain.conduct import arranged_conduct
from baton.domain.kernel import NIL, SYSTEM_CONDUIT
from baton.domain.trust.policy import command_sets

PROMPT_IDS = {prompt.name: id for id, prompt in PROMPTS.items()}
Grant = tuple[str, list[str], list[str], Callable[[str], Any]]
"""What a command calls a kind of grant, what it gains and what it loses, and how a command names one."""


class ActorSection(Section[ActorEntry]):
    section, label, lists, id_name = "actors", "actor", "list_actors", "actor_id"
    retired = frozenset({"deactivated"})
    creates = "register_actor"
    fixed, why_fixed = ("kind",), "no command changes it"

    def is_live(self, row: Any) -> bool:
        return super().is_live(row) and row.kind is not ActorKind.AGENT and row.name != DELETED_USER

    def is_own(self, row: Any) -> bool:
        return row.actor_id not in SEEDED_ACTOR_IDS


class AgentSection(Section[AgentEntry]):
    section, label, lists, gets, id_name = "agents", "agent", "list_agents", "get_agent", "agent_id"
    told_by = ("name", "version")
    nullable = frozenset({"description", "canonical_uri", "prompt", "budget"})
    domain_names = {"version": "version", "model": "model_ref", "prompt": "prompt_template_id"}
    creates = "define_agent"
    listed = ("capabilities",)
    later = {"tools": (), "budget": None, "status": "Defined"}
    fixed = ("kind", "model", "description", "canonical_uri", "prompt", "capabilities")
    why_fixed = "another definition is another agent; give it another version"
    MOVES = {
        ("Defined", "Versioned"): ("version_agent",),
        ("Defined", "Suspended"): ("version_agent", "suspend_agent"),
        ("Versioned", "Suspended"): ("suspend_agent",),
        ("Suspended", "Versioned"): ("resume_agent",),
    }

    def texts(self, entry: AgentEntry) -> tuple[str, ...]:
        return path_of(entry.name), path_of(entry.name, entry.version)

    def entry(self, view: Any, thing: RecordedThing, names: Names) -> AgentEntry:
        budget = None if view.budget is None else BudgetEntry(**dict(view.budget))
        if thing.id in SEEDED_AGENT_IDS:
            own = {"name": view.name, "version": view.version, "tools": tuple(sorted(view.tools))}
            return AgentEntry(**own, **without_none(budget=budget))
        prompt = None if view.prompt_template_id is None else PROMPTS[view.prompt_template_id].name
        return self.read_entry(view, names, budget=budget, prompt=prompt, status=str(view.status))

    def is_own(self, row: Any) -> bool:
        return row.agent_id not in SEEDED_AGENT_IDS

    def obstacle(self, entry: AgentEntry) -> str | None:
        if entry.kind is None or entry.model is None:
            return "it is not on record, and kind and model are needed to define it"
        if entry.prompt is not None and entry.prompt not in PROMPT_IDS:
            return f"there is no prompt {entry.prompt}; there are {', '.join(sorted(PROMPT_IDS))}"
        return None

    def creation(self, entry: AgentEntry) -> tuple[str, dict[str, Any]]:
        return self.creates, self.arguments(entry, prompt=PROMPT_IDS.get(entry.prompt or ""))

    def differences(self, old: AgentEntry, new: AgentEntry, view: Any) -> Iterator[Step]:
        yield from self.fixed_fields(old, new)
        added, removed = self.gained_and_lost(old, new, "tools")
        yield from (Update("revoke_tool_from_agent", {"tool_name": one}, f"tool {one} no longer") for one in removed)
        yield from (Update("grant_tool_to_agent", {"tool_name": one}, f"tool {one}") for one in added)
        if self.differs(old, new, "budget"):
            caps = {"monthly_cost_cap": None, "daily_token_cap": None} if new.budget is None else dict(new.budget)
            yield Update("update_agent_budget", caps, shown_change("budget", old.budget, new.budget))
        before = old.status or str(getattr(view, "status", ""))
        if new.status is not None and new.status != before:
            verbs = self.MOVES.get((before, new.status), ())
            if not verbs:
                yield Obstacle(f"{shown_change('status', before, new.status)}: an agent that was in service stays defined")
            for verb in verbs:
                reason = {"reason": REASON} if verb == "suspend_agent" else {}
                yield Update(verb, reason, shown_change("status", before, new.status))

    def retirement(self, thing: RecordedThing) -> tuple[str, dict[str, Any]] | None:
        return None if thing.id in SEEDED_AGENT_IDS else ("deprecate_agent", {"reason": REASON})


class GroupSection(Section[GroupEntry]):
    """Groups; members whose actor was deactivated can do nothing, and are passed over."""

    section, label, lists, gets, id_name = "groups", "group", "list_groups", "get_group", "group_id"
    nullable = frozenset({"claim"})
    domain_names = {"members": "member_ids"}
    creates, retires = "define_group", "retire_group"
    later = {"members": ()}
    fixed, why_fixed = ("claim",), "no command changes it; retire the group, then apply again"

    def entry(self, view: Any, thing: RecordedThing, names: Names) -> GroupEntry:
        gone = {id for id in view.member_ids if id in names.known and not names.known[id].live}
        return self.read_entry(view, names, members=names.keys(view.member_ids - gone))

    def differences(self, old: GroupEntry, new: GroupEntry, view: Any) -> Iterator[Step]:
        yield from self.fixed_fields(old, new)
        added, removed = self.gained_and_lost(old, new, "members")
        yield from (Update("remove_group_member", member(one), f"member {one} no longer") for one in removed)
        yield from (Update("add_group_member", member(one), f"member {one}") for one in added)


def member(key: str) -> dict[str, Any]:
    """Return how a command names an actor or agent that is listed in a group."""
    return {"actor_id": principal(key)}


class PolicySection(Section[PolicyEntry]):
    """Policies; those that the service gives itself are on no surface, and none whose grants are all revoked counts."""

    section, label, lists, gets, id_name = "policies", "policy", "list_policies", "get_policy", "policy_id"
    nullable = frozenset({"approval"})
    domain_names = {
        "conduit": "conduit_id",
        "surface": "surface_id",
        "principals": "permitted_principal_ids",
        "groups": "permitted_group_ids",
        "commands": "permitted_commands",
        "command_sets": "permitted_command_sets",
    }
    creates = "define_policy"
    listed = ("commands", "command_sets")
    fixed, why_fixed = ("surface", "conduit"), "no command changes it; define a policy of another name"

    def is_live(self, row: Any) -> bool:
        return bool(row.surface_id != NIL)

    def entry(self, view: Any, thing: RecordedThing, names: Names) -> PolicyEntry:
        conduit = None if view.conduit_id == SYSTEM_CONDUIT else names.key(view.conduit_id)
        approval = None if view.approval is None else approval_entry(view.approval, names)
        commands = tuple(sorted(view.permitted_commands - commands_of(view.permitted_command_sets)))
        return self.read_entry(view, names, conduit=conduit, approval=approval, commands=commands)

    def creation(self, entry: PolicyEntry) -> tuple[str, dict[str, Any]]:
        conduit = SYSTEM_CONDUIT if entry.conduit is None else Ref("conduits", entry.conduit)
        approval = None if entry.approval is None else approval_fields(entry.approval)
        return self.creates, self.arguments(entry, conduit=conduit, approval=approval)

    def differences(self, old: PolicyEntry, new: PolicyEntry, view: Any) -> Iterator[Step]:
        yield from self.fixed_fields(old, new)
        if self.asks(new, "approval") and comparable_approval(old.approval) != comparable_approval(new.approval):
            yield Obstacle(f"{shown_change('approval', old.approval, new.approval)}: {self.why_fixed}")
        grants: list[Grant] = [
            ("permitted_principal_id", *self.gained_and_lost(old, new, "principals"), principal),
            ("permitted_group_id", *self.gained_and_lost(old, new, "groups"), partial(Ref, "groups")),
            ("permitted_command_set", *self.gained_and_lost(old, new, "command_sets"), str),
            ("permitted_command", *self._commands_changed(old, new), str),
        ]
        if added := {f"{name}s": list(map(as_argument, gained)) for name, gained, _, as_argument in grants if gained}:
            named = ", ".join(one for _, gained, _, _ in grants for one in gained)
            yield Update("extend_policy", added, f"permits {named} too")
        for name, _, lost, as_argument in grants:
            for one in lost:
                yield Update("revoke_grant", {name: as_argument(one), "reason": REASON}, f"grant of {one} is revoked")

    def _commands_changed(self, old: PolicyEntry, new: PolicyEntry) -> tuple[list[str], list[str]]:
        """Return the commands that are to be listed and those that are not any more, beside what sets hold."""
        if not self.asks(new, "commands"):
            return [], []
        held = commands_of((new if self.asks(new, "command_sets") else old).command_sets or ())
        added, removed = members_changed(old.commands, new.commands)
        return [one for one in added if one not in held], [one for one in removed if one not in held]


def commands_of(sets: Iterable[str]) -> frozenset[str]:
    """Return what sets of commands hold in this release."""
    return frozenset[str]().union(*(command_sets().get(name, frozenset()) for name in sets))


def approval_entry(approval: Any, names: Names) -> ApprovalEntry:
    """Return an approval as a file says it."""
    named = {"principals": names.keys(approval.principals), "groups": names.keys(approval.groups)}
    return ApprovalEntry(**named, expires_after=approval.expires_after)


def approval_fields(entry: ApprovalEntry) -> dict[str, Any]:
    """Return an approval as the command names it."""
    named = {"principals": [principal(one) for one in entry.principals], "groups": refs("groups", entry.groups)}
    return {**named, "expires_after": entry.expires_after}


def comparable_approval(entry: ApprovalEntry | None) -> Any:
    """Return an approval in a form that is equal where it means the same."""
    return None if entry is None else (sorted(entry.principals), sorted(entry.groups), entry.expires_after)


def principal(key: str) -> Ref:
    """Return the reference to an actor or agent; keys of agents have a version."""
    return Ref("principals", key)


class ScheduleSection(Section[ScheduleEntry]):
    section, label, lists, gets, id_name = "schedules", "schedule", "list_schedules", "get_schedule", "schedule_id"
    creates, retires = "define_schedule", "retire_schedule"
    later = {"status": "Active"}
    fixed = ("calendar", "time_zone", "overlap", "catchup_window", "jitter")
    why_fixed = "no command changes it; retire the schedule, then apply again"

    def entry(self, view: Any, thing: RecordedThing, names: Names) -> ScheduleEntry:
        return self.read_entry(view, names, target=self.target(view.target, names), status=str(view.status))

    def target(self, target: Any, names: Names) -> ScheduledRecipe | ScheduledRun:
        """Return what a schedule conducts, as a file says it."""
        if target.kind == "ConductRecipe":
            return self.conduct(target, names)
        outside = ("subject_id", "raid", "pinned_calibration_ids", "external_refs", "campaign_id", "decided_by_decision_id")
        if named := [name for name in (*outside, "trigger_source") if getattr(target, name)]:
            raise UnnamedError(f"its target names {', '.join(named)}, which a file does not")
        phases = tuple(self.conduct(phase, names) for phase in target.phases)
        own = {"name": target.name, "override_parameters": target.override_parameters}
        return ScheduledRun(plan=names.key(target.plan_id), phases=phases, **own)

    def conduct(self, target: Any, names: Names) -> ScheduledRecipe:
        """Return how a recipe is conducted, as a file says it."""
        stored = target.arrangement.stored_form()
        usual = arranged_conduct.DEFAULT_ARRANGEMENT.stored_form()
        return ScheduledRecipe(
            recipe=names.key(target.recipe_id),
            name=target.name,
            procedure_kind=target.procedure_kind,
            bindings=target.bindings,
            assets=names.keys(target.target_asset_ids),
            **without_none(conduct=None if stored == usual else stored),
        )

    def creation(self, entry: ScheduleEntry) -> tuple[str, dict[str, Any]]:
        if isinstance(entry.target, ScheduledRecipe):
            return self.creates, self.arguments(entry, target={"kind": "ConductRecipe", **conduct_fields(entry.target)})
        run = {"name": entry.target.name, "override_parameters": plain(entry.target.override_parameters)}
        phases = [conduct_fields(phase) for phase in entry.target.phases]
        plan = {"plan_id": Ref("plans", entry.target.plan)}
        return self.creates, self.arguments(entry, target={"kind": "ConductPlan", **plan, **run, "phases": phases})

    def differences(self, old: ScheduleEntry, new: ScheduleEntry, view: Any) -> Iterator[Step]:
        yield from self.fixed_fields(old, new)
        if comparable_target(old.target) != comparable_target(new.target):
            yield Obstacle(f"{shown_change('target', old.target, new.target)}: {self.why_fixed}")
        if self.differs(old, new, "status"):
            yield hold_or_resume("schedule", old.status, new.status)


def hold_or_resume(thing: str, old: str | None, new: str | None) -> Update:
    """Return the command that holds a thing, or lets it start work again."""
    verb, reason = ("hold", {"reason": REASON}) if new == "Held" else ("resume", {})
    return Update(f"{verb}_{thing}", reason, shown_change("status", old, new))


class QueueSection(Section[QueueEntry]):
    """Queues; one with items in it is not retired by a file."""

    section, label, lists, id_name = "queues", "queue", "list_queues", "queue_id"
    told_by = ("name", "asset")
    domain_names = {"asset": "asset_id"}
    creates, retires = "open_queue", "retire_queue"
    later = {"status": "Active"}
    fixed, why_fixed = ("on_failure",), "no command changes it; retire the queue, then apply again"

    def texts(self, entry: QueueEntry) -> tuple[str, ...]:
        return path_of(entry.name), f"{entry.asset}/{path_of(entry.name)}"

    def differences(self, old: QueueEntry, new: QueueEntry, view: Any) -> Iterator[Step]:
        yield from self.fixed_fields(old, new)
        if self.differs(old, new, "status"):
            yield hold_or_resume("queue", old.status, new.status)

    def retirement(self, thing: RecordedThing) -> tuple[str, dict[str, Any]] | None:
        row = thing.row
        return None if row.waiting_count or row.running_item_id is not None else super().retirement(thing)


def conduct_fields(target: ScheduledRecipe) -> dict[str, Any]:
    """Return how a recipe is conducted, as the command names it."""
    own = {"name": target.name, "procedure_kind": target.procedure_kind, "bindings": plain(target.bindings)}
    places = {"recipe_id": Ref("recipes", target.recipe), "target_asset_ids": refs("assets", target.assets)}
    return {**places, **own, **without_none(conduct=plain(target.conduct))}


def comparable_target(target: ScheduledRecipe | ScheduledRun) -> Any:
    """Return a target with all defaults of its conducts filled in."""
    if isinstance(target, ScheduledRun):
        return target.plan, target.name, plain(target.override_parameters), [comparable_target(one) for one in target.phases]
    asked = dict(target.conduct or {})
    form = arranged_conduct.FORMS[str(asked.get("command", arranged_conduct.USUAL))]
    conduct = form.model_validate({"command": arranged_conduct.USUAL, **asked}).stored_form()
    own = target.recipe, target.name, target.procedure_kind, plain(target.bindings), sorted(target.assets)
    return *own, conduct
