"""The settings of a deployment; each is an environment variable of the same name in capitals."""

import json
import re
from collections.abc import Mapping
from enum import StrEnum
from functools import cache
from ipaddress import IPv4Network, IPv6Network
from pathlib import Path
from typing import Annotated, Any, Literal, Self
from uuid import UUID
from zoneinfo import available_timezones

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, SecretStr, StringConstraints
from pydantic_settings import BaseSettings, NoDecode, PydanticBaseSettingsSource, SettingsConfigDict

from baton.application import plant
from baton.application.identity import IdentityProvider, is_absolute_url
from baton.application.plan_settings import PlanExecutorSettings, shown_executor
from baton.domain.safety.clearance_template import SEEDED_TITLES
from baton.domain.shared.citation import LandingKind, PublicPages
from baton.domain.shared.outages import PlannedOutage, outages_in
from baton.domain.shared.units import UnitPolicy
from baton.domain.steering.steering import DecideSubstrate

HIDDEN = "***"
MODEL_SETTINGS = ("RUN_DEBRIEFER_MODEL", "CAUTION_DRAFTER_MODEL")  # may be named as a model reference instead of a model
DAY, YEAR = 86_400, 31_536_000  # seconds
TemplateCode = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=50)]
HostName = Annotated[str, Field(pattern=r"^([A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(:[0-9]{1,5})?$", max_length=300)]
LogbookName = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=200)]
Offerable = Literal[DecideSubstrate.SOBOL, DecideSubstrate.BOTORCH, DecideSubstrate.STAGED, DecideSubstrate.LLM]
OfferedDecider = Annotated[Offerable | plant.PluginName, Field(union_mode="left_to_right")]


class AuthorizationMode(StrEnum):
    PERMISSIVE = "permissive"
    POLICY = "policy"


class McpToolset(StrEnum):
    OPERATOR = "operator"
    STEERING = "steering"
    AUDITOR = "auditor"
    ENGINEER = "engineer"
    ALL = "all"


class LogLevel(StrEnum):
    DEBUG = "DEBUG"
    INFO = "INFO"
    WARNING = "WARNING"
    ERROR = "ERROR"


class TraceExporter(StrEnum):
    NONE = "none"
    CONSOLE = "console"
    OTLP = "otlp"


known_time_zones = cache(available_timezones)  # which lists directories


def _outages(given: object) -> object:
    """Return announced outages as they were given: as JSON, or in the file of this path."""
    if not isinstance(given, str):
        return given
    if given.lstrip().startswith("["):
        return json.loads(given)
    try:
        return outages_in(Path(given).read_text())
    except OSError as error:
        raise ValueError(f"the calendar {given} cannot be read: {error.strerror}") from None


def _time_zone(name: str) -> str:
    if name not in known_time_zones():
        raise ValueError("there is no such time zone; give an IANA name such as Europe/Berlin")
    return name


def _base_url(url: str) -> str:
    if not is_absolute_url(url, ("http", "https")):
        raise ValueError("give an absolute http or https URL")
    return url.rstrip("/")


class FederationPeer(BaseModel):
    """A peer: where it is reached, the token it gave us, the id that we have there, and its own accounts here."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)
    address: Annotated[str, AfterValidator(_base_url)] | None = Field(None, repr=False)
    token: SecretStr | None = None
    facility_id: UUID | None = None
    accounts: tuple[UUID, ...] = ()


class UnownedSignals(StrEnum):
    REFUSE = "refuse"
    ALLOW = "allow"


class LapsedCalibrations(StrEnum):
    WARN = "warn"
    REFUSE = "refuse"


class SealSignatures(StrEnum):
    REQUIRED = "required"
    OPTIONAL = "optional"


class PidMinter(StrEnum):
    NONE = "none"
    DATACITE = "datacite"
    DEVELOPMENT = "development"


class ComputeSubstrate(StrEnum):
    IN_MEMORY = "in_memory"
    LOCAL_PROCESS = "local_process"


class Settings(BaseSettings):
    """The settings of every process of the service."""

    model_config = SettingsConfigDict(frozen=True, extra="ignore", env_ignore_empty=True, hide_input_in_errors=True)

    app_env: Annotated[str, AfterValidator(lambda tier: tier.strip().lower())] = "development"
    """The tier: `prod`, `production` and `staging` are the production tier, `test` relaxes what tests need."""
    database_url: str | None = Field(default=None, repr=False)
    """PostgreSQL to use; unset, `baton up` starts its own."""
    database_owner_url: str | None = Field(default=None, repr=False)
    """The same PostgreSQL as the user who owns the tables, for migrations and rebuilds; unset, DATABASE_URL does both."""
    temporal_address: str | None = None
    """host:port of the Temporal server to use; unset, `baton up` starts its own."""
    temporal_namespace: str = "default"
    """The namespace of the service's workflows."""
    temporal_tls: bool = False
    """Whether the Temporal server is reached over TLS; production tiers demand it of any server off this machine."""
    temporal_tls_ca: Path | None = None
    """A PEM file of the authorities that the server's certificate is checked against; unset, the system's."""
    temporal_tls_cert: Path | None = None
    """A PEM file of the certificate that the service shows the server; goes with `TEMPORAL_TLS_KEY`."""
    temporal_tls_key: Path | None = None
    """The PEM file of that certificate's key."""
    temporal_api_key: SecretStr | None = None
    """The key that the server is called with, over TLS only."""
    worker_deployment_name: Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]{1,100}$")] | None = None
    """The deployment that workers belong to, where old ones are kept until their workflows end; unset, a new worker
    continues the workflows that an old one began."""
    worker_build_id: Annotated[str, Field(pattern=r"^[A-Za-z0-9._+-]{1,100}$")] | None = None
    """Which build of that deployment this worker is."""
    require_authenticated_principal: bool = False
    """Refuse requests without a verified principal."""
    authorization_mode: AuthorizationMode = AuthorizationMode.PERMISSIVE
    """`policy` enforces the defined policies; `permissive` allows everything, for development and tests."""
    allow_permissive_authz: bool = False
    """Accept `permissive` in the production tier."""
    identity_providers: tuple[IdentityProvider, ...] = ()
    """The issuers whose tokens are accepted, as a JSON list."""
    bootstrap_principal_id: UUID | None = None
    """The administrator who gets a policy of their own for defining the first real ones."""
    mcp_stdio_principal_id: UUID | None = None
    """The principal of MCP over stdio, which carries no token."""
    mcp_toolset: McpToolset = McpToolset.OPERATOR
    """Which MCP tools are listed unless a client asks for another set; the others stay callable by their name."""
    public_base_url: Annotated[str, AfterValidator(_base_url)] | None = None
    """The URL clients reach the service under; unset, it is taken from the request."""
    trusted_proxies: tuple[IPv4Network | IPv6Network, ...] = ()
    """The networks whose proxies are believed in `X-Forwarded-Host` and `X-Forwarded-Proto`, as a JSON list."""
    self_facility_code: plant.FacilityCode = "facility"
    """The code of the facility this deployment serves."""
    facility_time_zone: Annotated[str, AfterValidator(_time_zone)] = "UTC"
    """The time zone whose clock the console shows, by its IANA name, as in Europe/Berlin."""
    clearance_template_codes: tuple[TemplateCode, ...] = tuple(SEEDED_TITLES)
    """The safety forms the own site starts with, as a JSON list; one that was withdrawn comes back while it is listed."""
    unowned_signals: UnownedSignals | None = None
    """Whether a conduct may write to signals that no asset owns, `refuse` or `allow`; unset, it is refused in the production
    tier and allowed elsewhere."""
    strict_limits: bool = False
    """Whether a pattern is refused with an axis on which no owner sets limits."""
    lapsed_calibrations: LapsedCalibrations = LapsedCalibrations.WARN
    """Whether a run that pins a lapsed calibration revision only warns in its preflight, `warn`, or is refused, `refuse`."""
    planned_outages: Annotated[tuple[PlannedOutage, ...], NoDecode, BeforeValidator(_outages)] = ()
    """Announced outages of supplies, which are expected and close no gate: a JSON list of `kind`, `starts_at` and `ends_at`,
    or the path of an iCalendar file, which is read when a process starts."""
    witnessed_runs_claim: bool | None = None
    """Whether a live run elsewhere keeps conducts from the assets of its devices while its witness gives word; unset, it
    does in the production tier."""
    unit_policy: UnitPolicy = UnitPolicy.CONVERT
    """The treatment of a value whose declared unit is not the one that the control system states: `convert`, `refuse`, or
    `ignore`, which compares nothing."""
    clearance_four_eyes: bool | None = None
    """Whether the author of a safety form is kept from reviewing and approving it; unset, so it is in the production
    tier."""
    pid_minter: Annotated[PidMinter | plant.PluginName, Field(union_mode="left_to_right")] = PidMinter.NONE
    """Who issues persistent identifiers: nobody, `datacite`, `development` under prefixes for testing, or an installed
    package by the name of its minter."""
    datacite_address: Annotated[str, AfterValidator(_base_url)] = "https://api.datacite.org"
    """Where DataCite's REST API is; https://api.test.datacite.org is its test system."""
    datacite_prefix: Annotated[str, Field(pattern=r"^10\.[0-9]{4,9}(\.[0-9]+)*$")] | None = None
    """The DOI prefix that is assigned to the repository."""
    datacite_repository_id: Annotated[str, Field(min_length=1)] | None = None
    """The repository that DataCite knows this facility as, which is the name of its account."""
    datacite_password: SecretStr | None = None
    """The password of that account."""
    facility_publisher: Annotated[str, Field(min_length=1)] | None = None
    """The publisher named on minted identifiers; unset, the own facility's display name."""
    landing_page_template: Annotated[str, Field(pattern=r"\{asset_id\}")] | None = None
    """Where the identifier of an asset leads, with `{asset_id}`: a page of your own."""
    landing_page_templates: dict[LandingKind, Annotated[str, Field(pattern=r"\{id\}")]] = {}
    """Where identifiers lead instead of to /landing/ under PUBLIC_BASE_URL, by assets, datasets, editions, fixtures or
    subjects, with `{id}`."""
    public_landing_pages: frozenset[PublicPages] = frozenset({LandingKind.EDITIONS, "minted"})
    """The pages under /landing/ that need no token, as a JSON list: of assets, datasets, editions, fixtures, subjects, and
    minted for whatever has a persistent identifier."""
    enclosure_observation_ttl_seconds: Annotated[int, Field(ge=1, le=86400)] = 120
    """After this long without an observation an enclosure counts as Unknown, whatever was observed last."""
    monitored_permit_ttl_seconds: Annotated[int, Field(ge=1, le=86400)] = 10
    """The same where the service's own monitor watches, which confirms a permit every 3 s while it is connected."""
    control_routes: tuple[plant.ControlRoute, ...] = ()
    """Which control system serves which addresses, as a JSON list; without one, all signals are in memory."""
    ophyd_devices: str = ""
    """The devices behind routes of `ophyd`: `module:factory` of the site's Python, or a happi database (`.json`)."""
    control_writes_enabled: bool = True
    """Whether anything may be written to the control systems; `false` makes every route read-only."""
    conduct_restart_limit_seconds: Annotated[int, Field(ge=1)] = 300
    """A conduct that was interrupted for this long does not continue unasked."""
    action_timeout_seconds: Annotated[int, Field(ge=1)] = 3600
    """How long an action of a procedure may take."""
    compute_substrate: ComputeSubstrate = ComputeSubstrate.IN_MEMORY
    """Where the programs of compute steps run: `local_process` on the worker's machine, `in_memory` nowhere."""
    compute_programs: tuple[Annotated[str, Field(min_length=1)], ...] = ()
    """The programs that compute steps may run, as a JSON list of absolute paths; a step's first word must be one of them."""
    compute_user: Annotated[str, Field(min_length=1)] | None = None
    """The user of the worker's machine that programs run as, which takes a worker run by root; unset, the worker's own."""
    compute_job_directory: Path | None = None
    """Where `local_process` keeps its jobs; on a disk that outlasts the worker, and shared by the workers of a machine."""
    compute_timeout_seconds: Annotated[int, Field(ge=1)] = 3600
    """How long the program of a compute step may run before it is stopped with all it started."""
    compute_output_limit_bytes: Annotated[int, Field(ge=4096)] = 16 * 1024 * 1024
    """How much of a program's output is kept, and of its errors; of more, half from the beginning, half from the end."""
    compute_job_retention_hours: Annotated[int, Field(ge=0)] = 168
    """How long the directory of a job is kept once its conduct has ended; 0 keeps all for ever."""
    compute_environment: dict[str, str] = Field(default={}, repr=False)
    """What the programs of compute steps find in their environment besides, as a JSON object."""
    plan_executors: tuple[PlanExecutorSettings, ...] = ()
    """The executors of Bluesky plans, as a JSON list; each allows `plans` by their exact names, and none unless it says."""
    decide_substrates: tuple[OfferedDecider, ...] = ()
    """The deciders that requests may choose besides in_memory, grid_walk and caller, as a JSON list."""
    decide_model: str | None = None
    """The language model behind the decider `llm`, as `provider/model` or `provider/model@pin`."""
    anthropic_api_key: SecretStr | None = None
    """The key for models of the provider `anthropic`; unset, they cannot be asked."""
    anthropic_base_url: Annotated[str, AfterValidator(_base_url)] | None = Field(default=None, repr=False)
    """Where they are asked instead of the provider's own address."""
    openai_api_key: SecretStr | None = None
    """The key for models of the provider `openai`; a server of one's own may do without."""
    openai_base_url: Annotated[str, AfterValidator(_base_url)] | None = Field(default=None, repr=False)
    """Where they are asked instead of the provider's own address: any server with chat completions."""
    run_debriefer_model: str | None = None
    """The language model that debriefs runs, as `provider/model` or `provider/model@pin`; unset, rules write the debrief."""
    caution_drafter_model: str | None = None
    """The language model that drafts cautions, likewise; unset, rules do."""
    language_model_timeout_seconds: Annotated[int, Field(ge=1)] = 600
    """How long a language model may take for one attempt at an answer."""
    require_approved_language_model: bool = False
    """Whether an agent may be defined only with a model that the catalog has as approved."""
    simulated_signals: dict[plant.SignalAddress, plant.SignalValue] = {}
    """The values that signals in memory start with, as a JSON object."""
    simulated_devices: tuple[plant.SimulatedDevice, ...] = ()
    """Motors, detectors and signals in memory that behave like a plant's, as a JSON list."""
    simulation_seed: int = 0
    """What the noise of simulated devices is drawn from."""
    simulation_journal: Path | None = None
    """A file that keeps what is done to signals in memory, so that all processes share one plant and it outlives them."""
    monitored_enclosures: dict[plant.MonitoredName, plant.SignalAddress] = {}
    """The permit signal of each enclosure that is observed from here, as a JSON object under the enclosures' names."""
    monitored_supplies: tuple[plant.MonitoredSupply, ...] = ()
    """The supplies that are observed from here, as a JSON list."""
    data_roots: tuple[Path, ...] = ()
    """The directories whose files the service may read, to check copies, to take up scans and to show previews, as a JSON
    list of absolute paths; without one, no file is read."""
    verifier_allowed_hosts: tuple[HostName, ...] = ()
    """The hosts that copies are read from over HTTP, as a JSON list; `host:port` allows one port, `host` all of them."""
    verifier_budget_seconds: Annotated[float, Field(gt=0, le=DAY)] = 60
    """How long the bytes of one copy may take to read before it counts as unreachable."""
    scan_reader_memory_bytes: Annotated[int, Field(ge=256 * 1024 * 1024)] = 512 * 1024 * 1024
    """How much memory the process that reads one scan file may have, its libraries included."""
    scan_reader_seconds: Annotated[int, Field(ge=1, le=3600)] = 30
    """How long the process that reads one scan file may take, the digest of the file's bytes apart."""
    signing_key_directory: Path | None = None
    """Where the facility's keys are, as PEM files: private ones that sign in `name.pem`, public ones that signatures are
    checked against in `name.pub`; unset, nothing can be signed."""
    seal_signatures: SealSignatures | None = None
    """Whether a seal takes a pointer only with its online key's signature and a new online key only with its offline root's,
    `required` or `optional`; unset, they are required in the production tier. One that is given is always checked."""
    scicat_address: Annotated[str, AfterValidator(_base_url)] | None = None
    """Where SciCat's REST API is, as in https://scicat.example.org/api/v3; every dataset is entered there. Unset, none."""
    scicat_token: SecretStr | None = None
    """The token that SciCat is called with; its account may create datasets with identifiers of their own."""
    scicat_owner_group: Annotated[str, Field(min_length=1, max_length=200)] | None = None
    """The group of SciCat that owns what is entered."""
    scicat_contact_email: Annotated[str, Field(pattern=r"^[^@\s]+@[^@\s]+\.[^@\s]+$")] | None = None
    """The mailbox of the facility that datasets in SciCat name as their contact."""
    scicat_pid_prefix: Annotated[str, Field(pattern=r"^[A-Za-z0-9._/-]{1,100}$")] | None = None
    """What identifiers of datasets in SciCat begin with, before a slash and the dataset's id; unset, the facility's code."""
    tiled_directory: Path | None = None
    """A directory for Tiled to serve, in which every dataset with a file under DATA_ROOTS gets a link to it; unset, none."""
    publication_outbox: Path | None = None
    """Where published artifacts are put for the peers, and read from when a peer asks for one; unset, nothing is
    published."""
    federation_peers: dict[plant.FacilityCode, FederationPeer] = {}
    """The peers, as a JSON object: under each facility's code its `address`, the base of its REST API, the `token` that it
    gave us, the `facility_id` under which it knows us, and its `accounts` here, which read what was published to it."""
    logbook_mirror_directory: Path | None = None
    """Where debriefs are copied to for the facility's own electronic logbook; unset, nothing is copied."""
    logbook_mirror_target: LogbookName | None = None
    """The logbook they are copied to; unset, the one named like the run's facility."""
    run_debriefer_enabled: bool = True
    """Whether debriefs are written when runs end."""
    caution_drafter_enabled: bool = True
    """Whether cautions are proposed when runs end."""
    caution_drafter_promotes: bool = False
    """Whether an agent that drafts cautions makes its own harmless proposals cautions, by the promoter's rule."""
    caution_promoter_enabled: bool = False
    """Whether harmless proposals become cautions without a person."""
    caution_promoter_min_confidence: Annotated[float, Field(ge=0, le=1)] = 0.7
    """How sure a proposal must be of itself for that."""
    run_supervisor_enabled: bool = False
    """Whether runs that need beam are held when it is lost."""
    run_supervisor_tick_seconds: Annotated[int, Field(ge=1, le=DAY)] = 30
    """How often the supervisor looks; it looks at once besides when a beam supply goes."""
    run_supervisor_stop_after_seconds: Annotated[int, Field(ge=0, le=YEAR)] | None = None
    """After this long without beam a run that the supervisor holds is stopped; unset, it stays held."""
    clearance_expirer_enabled: bool = True
    """Whether clearances are taken out of force when their validity has run out."""
    clearance_expirer_tick_seconds: Annotated[int, Field(ge=1, le=DAY)] = 300
    """How often the expirer looks."""
    max_request_body_size_bytes: Annotated[int, Field(ge=1)] = 8 * 1024 * 1024
    """Larger request bodies are refused before anything else is looked at."""
    client_timeout_seconds: Annotated[float, Field(gt=0)] = 30
    """How long a client may take to send a request as a whole, and to take up any of what waits for it."""
    max_open_streams: Annotated[int, Field(ge=1)] = 200
    """How many live streams one API process serves at a time."""
    max_streams_per_principal: Annotated[int, Field(ge=1)] = 20
    """How many of them are of one principal; callers who are not signed in count as one."""
    idempotency_lock_stale_seconds: Annotated[int, Field(ge=1)] = 60
    """After this long an unfinished request's idempotency key may be claimed again."""
    idempotency_ttl_hours: Annotated[int, Field(ge=0)] = 24
    """How long finished requests can be replayed; 0 keeps them for ever."""
    database_pool_size: Annotated[int, Field(ge=1)] = 16
    """Database connections of one process."""
    log_level: Annotated[LogLevel, BeforeValidator(lambda level: str(level).strip().upper())] = LogLevel.INFO
    """The least severe log lines written."""
    access_log: bool | None = None
    """Write a log line for each request: operation, status, duration; unset, it is written in the production tier."""
    trace_exporter: TraceExporter = TraceExporter.NONE
    """Where traces go: `console` writes spans to standard error, `otlp` sends them where OTEL_EXPORTER_OTLP_* says."""

    @property
    def production(self) -> bool:
        """Whether this is a production tier."""
        return self.app_env in ("prod", "production", "staging")

    @property
    def address_templates(self) -> dict[str, str]:
        """Where identifiers lead, where that is not here, by the kind of thing, with `{id}`."""
        own = self.landing_page_template
        assets = {} if own is None else {LandingKind.ASSETS.value: own.replace("{asset_id}", "{id}")}
        return {**assets, **{kind.value: template for kind, template in self.landing_page_templates.items()}}

    @property
    def requests_logged(self) -> bool:
        """Whether each request is a line of the log."""
        return self.production if self.access_log is None else self.access_log

    @property
    def witnessed_claims(self) -> bool:
        """Whether live runs elsewhere keep conducts from the assets of their devices."""
        return self.production if self.witnessed_runs_claim is None else self.witnessed_runs_claim

    @property
    def unowned_signals_allowed(self) -> bool:
        """Whether a conduct may write to signals that no asset owns."""
        chosen = self.unowned_signals
        return not self.production if chosen is None else chosen is UnownedSignals.ALLOW

    @property
    def seal_signatures_required(self) -> bool:
        """Whether a seal takes pointers and new online keys only with a signature."""
        return self.production if self.seal_signatures is None else self.seal_signatures is SealSignatures.REQUIRED

    @property
    def four_eyes(self) -> bool:
        """Whether nobody reviews or approves a safety form of their own."""
        return self.production if self.clearance_four_eyes is None else self.clearance_four_eyes

    @property
    def tokens_required(self) -> bool:
        """Whether requests need a token: demanded, or possible because somebody issues them."""
        return self.require_authenticated_principal or bool(self.identity_providers)

    @property
    def enforced(self) -> bool:
        """Whether authorization asks the policies."""
        return self.authorization_mode is AuthorizationMode.POLICY

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        *others: object,
        **named: object,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        return init_settings, env_settings  # a dotenv file that is not there takes as long as the environment


class RecordedSettings(Settings):
    """Settings as another process recorded them, independent of this one's environment; secrets are hidden in them."""

    @classmethod
    def settings_customise_sources(
        cls, settings_cls: type[BaseSettings], init_settings: PydanticBaseSettingsSource, *others: object, **named: object
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        return (init_settings,)

    @classmethod
    def of(cls, shown: Mapping[str, Any]) -> Self:
        """Return the settings that `shown_settings` showed."""
        return cls(**{name.lower(): value for name, value in shown.items()})


def shown_settings(settings: Settings) -> dict[str, Any]:
    """Return every setting under its variable's name, as plain data with secrets, passwords and token subjects hidden."""
    shown = settings.model_dump(mode="json")
    addresses = ("anthropic_base_url", "openai_base_url", "datacite_address", "scicat_address")
    for name in ("database_url", "database_owner_url", *addresses):
        shown[name] = shown[name] and _without_password(shown[name])
    for provider in shown["identity_providers"]:
        for name in ("jwks_url", "introspection_url", "authorization_url", "token_url"):
            provider[name] = provider[name] and _without_password(provider[name])
        provider["introspection_client_secret"] = provider["introspection_client_secret"] and HIDDEN
        for binding in provider["subject_bindings"]:
            binding["subject"] = HIDDEN
    for name in ("anthropic_api_key", "openai_api_key", "datacite_password", "temporal_api_key", "scicat_token"):
        shown[name] = shown[name] and HIDDEN
    for peer in shown["federation_peers"].values():
        peer["address"] = peer["address"] and _without_password(peer["address"])
        peer["token"] = peer["token"] and HIDDEN
    shown["plan_executors"] = [shown_executor(executor) for executor in shown["plan_executors"]]
    shown["compute_environment"] = dict.fromkeys(settings.compute_environment, HIDDEN)
    return {name.upper(): value for name, value in shown.items()}


def _without_password(url: str) -> str:
    hostward = re.sub(r"//.*@", f"//{HIDDEN}@", url, flags=re.DOTALL)
    return re.sub(r"(password\s*=\s*)('(?:\\.|[^'\\])*'|[^&\s]*)", rf"\g<1>{HIDDEN}", hostward, flags=re.IGNORECASE)
