"""What a deployment may set, and the combinations no process starts with.

Every setting is an environment variable of the same name in capitals. `boot_objections` lists what is wrong with them
and how to mend it; a process with objections refuses to start.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from enum import StrEnum
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit
from uuid import UUID

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    SecretStr,
    StringConstraints,
)
from pydantic_settings import BaseSettings, SettingsConfigDict

from application.language_models import OFFLINE, named_model
from application.plant import (
    ControlRoute,
    FacilityCode,
    MonitoredName,
    MonitoredSupply,
    SignalAddress,
    SignalValue,
    SimulatedDevice,
)
from domain.access.actor import ActorKind
from domain.agent.seeded_ids import SEEDED_IDS
from domain.kernel import NIL
from domain.operation.deciding import DecideSubstrate
from domain.safety.clearance_template import SEEDED_TITLES

PRODUCTION_TIER = frozenset({"prod", "production", "staging"})
SIGNATURE_ALGORITHMS = (
    *("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"),
    *("ES256", "ES384", "ES512", "ES256K", "EdDSA"),
)
"""Algorithms whose verifying key may be public; `none` and the symmetric ones are not among them."""
HIDDEN = "***"
MODEL_SETTINGS = ("RUN_DEBRIEFER_MODEL", "CAUTION_DRAFTER_MODEL")
"""The settings that a reference to a model may name in the model's stead."""
LONGEST_TICK, LONGEST_OUTAGE = 86_400, 31_536_000
"""Seconds: a day between two turns of an agent, a year without beam."""
OTLP_EXPORTER = "opentelemetry.exporter.otlp.proto.http.trace_exporter"
TemplateCode = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=50)]


class AuthorizationMode(StrEnum):
    PERMISSIVE = "permissive"
    POLICY = "policy"


class McpToolset(StrEnum):
    ALL = "all"
    ESSENTIAL = "essential"


class LogLevel(StrEnum):
    DEBUG = "DEBUG"
    INFO = "INFO"
    WARNING = "WARNING"
    ERROR = "ERROR"


class TraceExporter(StrEnum):
    """Where traces go."""

    NONE = "none"
    CONSOLE = "console"
    OTLP = "otlp"


TokenText = Annotated[str, Field(min_length=1, max_length=500)]


class ProviderBinding(BaseModel):
    """A token subject that configuration binds to an actor."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)
    subject: TokenText = Field(repr=False)
    actor_id: UUID
    kind: ActorKind | None = None


class IdentityProvider(BaseModel):
    """One issuer whose tokens are accepted, and how they are checked: by its key set or by asking it."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)
    issuer: TokenText
    jwks_url: str | None = None
    introspection_url: str | None = None
    introspection_client_id: str | None = None
    introspection_client_secret: SecretStr | None = None
    audiences: dict[UUID, Annotated[str, Field(min_length=1)]] = {}
    allowed_algorithms: tuple[str, ...] = ("RS256", "ES256")
    require_access_token_type: bool = True
    principal_kind: ActorKind = ActorKind.HUMAN
    introspection_cache_ttl_seconds: Annotated[float, Field(ge=1, le=86400)] = 30
    allow_insecure_jwks_url: bool = False
    allow_insecure_introspection_url: bool = False
    subject_bindings: tuple[ProviderBinding, ...] = ()


def _base_url(url: str) -> str:
    if not _reaches(url, ("http", "https")):
        raise ValueError("give an absolute http or https URL")
    return url.rstrip("/")


class ComputeSubstrate(StrEnum):
    """Where jobs run."""

    IN_MEMORY = "in_memory"
    LOCAL_PROCESS = "local_process"


OfferedDecider = Literal[DecideSubstrate.SOBOL, DecideSubstrate.BOTORCH, DecideSubstrate.STAGED, DecideSubstrate.LLM]


class Settings(BaseSettings):
    """The settings of every process of the service."""

    model_config = SettingsConfigDict(
        frozen=True,
        extra="ignore",
        env_ignore_empty=True,
        hide_input_in_errors=True,
        use_attribute_docstrings=True,
    )

    app_env: Annotated[str, AfterValidator(lambda tier: tier.strip().lower())] = "development"
    """The tier: `prod`, `production` and `staging` are the production tier, `test` relaxes what tests need."""
    database_url: str | None = Field(default=None, repr=False)
    """PostgreSQL to use; unset, `baton up` starts its own."""
    temporal_address: str | None = None
    """host:port of the Temporal server to use; unset, `baton up` starts its own."""
    temporal_namespace: str = "default"
    """The namespace of the service's workflows."""
    worker_deployment_name: Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]{1,100}$")] | None = None
    """The deployment that workers belong to, where old ones are kept until their workflows end; unset, a new worker goes
    on with whatever an old one began."""
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
    mcp_toolset: McpToolset = McpToolset.ALL
    """`essential` limits the MCP tool list to the task-level tools."""
    public_base_url: Annotated[str, AfterValidator(_base_url)] | None = None
    """The URL clients reach the service under; unset, it is taken from the request."""
    self_facility_code: FacilityCode = "facility"
    """The code of the facility this deployment serves."""
    clearance_template_codes: tuple[TemplateCode, ...] = tuple(SEEDED_TITLES)
    """The safety forms the own site starts with, as a JSON list; one that was withdrawn comes back while it is listed."""
    facility_publisher: Annotated[str, Field(min_length=1)] | None = None
    """The publisher named on minted identifiers; unset, the own facility's display name."""
    landing_page_template: Annotated[str, Field(pattern=r"\{asset_id\}")] | None = None
    """Where a minted identifier leads, with `{asset_id}`; unset, the console's page of the asset."""
    enclosure_observation_ttl_seconds: Annotated[int, Field(ge=1, le=86400)] = 120
    """After this long without an observation an enclosure counts as Unknown, whatever was observed last."""
    control_routes: tuple[ControlRoute, ...] = ()
    """Which control system serves which addresses, as a JSON list; without one, all signals are in memory."""
    control_writes_enabled: bool = True
    """Whether anything may be written to the control systems; `false` makes every route read-only."""
    conduct_restart_limit_seconds: Annotated[int, Field(ge=1)] = 300
    """After standing still for this long a conduct does not go on unasked."""
    action_timeout_seconds: Annotated[int, Field(ge=1)] = 3600
    """How long an action of a procedure may take."""
    compute_substrate: ComputeSubstrate = ComputeSubstrate.IN_MEMORY
    """Where the programs of compute steps run: `local_process` on the worker's machine, `in_memory` nowhere."""
    compute_job_directory: Path | None = None
    """Where `local_process` keeps its jobs; on a disk that outlasts the worker, and shared by the workers of a machine."""
    compute_timeout_seconds: Annotated[int, Field(ge=1)] = 3600
    """How long the program of a compute step may run before it is stopped with all it started."""
    compute_environment: dict[str, str] = Field(default={}, repr=False)
    """What the programs of compute steps find in their environment besides, as a JSON object."""
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
    simulated_signals: dict[SignalAddress, SignalValue] = {}
    """The values that signals in memory start with, as a JSON object."""
    simulated_devices: tuple[SimulatedDevice, ...] = ()
    """Motors, detectors and signals in memory that behave like a plant's, as a JSON list."""
    simulation_seed: int = 0
    """What the noise of simulated devices is drawn from."""
    simulation_journal: Path | None = None
    """A file that keeps what is done to signals in memory, so that all processes share one plant and it outlives them."""
    monitored_enclosures: dict[MonitoredName, SignalAddress] = {}
    """The permit signal of each enclosure that is observed from here, as a JSON object under the enclosures' names."""
    monitored_supplies: tuple[MonitoredSupply, ...] = ()
    """The supplies that are observed from here, as a JSON list."""
    signing_key_directory: Path | None = None
    """Where the facility's signing keys are, one PEM file each; unset, nothing can be signed."""
    publication_outbox: Path | None = None
    """Where published artifacts are put for the peers; unset, nothing is published."""
    logbook_mirror_directory: Path | None = None
    """Where debriefs are copied to for the facility's own electronic logbook; unset, nothing is copied."""
    logbook_mirror_target: Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=200)] | None = (
        None
    )
    """The logbook they are copied to; unset, the one named like the run's facility."""
    run_debriefer_enabled: bool = True
    """Whether debriefs are written when runs end."""
    caution_drafter_enabled: bool = True
    """Whether cautions are proposed when runs end."""
    caution_promoter_enabled: bool = False
    """Whether harmless proposals become cautions without a person."""
    caution_promoter_min_confidence: Annotated[float, Field(ge=0, le=1)] = 0.7
    """How sure a proposal must be of itself for that."""
    run_supervisor_enabled: bool = False
    """Whether runs that need beam are held when it is lost."""
    run_supervisor_tick_seconds: Annotated[int, Field(ge=1, le=LONGEST_TICK)] = 30
    """How often the supervisor looks; it looks at once besides when a beam supply goes."""
    run_supervisor_stop_after_seconds: Annotated[int, Field(ge=0, le=LONGEST_OUTAGE)] | None = None
    """After this long without beam a run that the supervisor holds is stopped; unset, it stays held."""
    clearance_expirer_enabled: bool = True
    """Whether clearances are taken out of force when their validity has run out."""
    clearance_expirer_tick_seconds: Annotated[int, Field(ge=1, le=LONGEST_TICK)] = 300
    """How often the expirer looks."""
    max_request_body_size_bytes: Annotated[int, Field(ge=1)] = 8 * 1024 * 1024
    """Larger request bodies are refused before anything else is looked at."""
    idempotency_lock_stale_seconds: Annotated[int, Field(ge=1)] = 60
    """After this long an unfinished request's idempotency key may be claimed again."""
    idempotency_ttl_hours: Annotated[int, Field(ge=0)] = 24
    """How long finished requests can be replayed; 0 keeps them for ever."""
    database_pool_size: Annotated[int, Field(ge=1)] = 16
    """Database connections of one process."""
    log_level: Annotated[LogLevel, BeforeValidator(lambda level: str(level).strip().upper())] = LogLevel.INFO
    """The least severe log lines written."""
    trace_exporter: TraceExporter = TraceExporter.NONE
    """Where traces go: `console` writes spans to standard error, `otlp` sends them where OTEL_EXPORTER_OTLP_* says."""

    @property
    def production(self) -> bool:
        """Whether this is a production tier."""
        return self.app_env in PRODUCTION_TIER

    @property
    def enforced(self) -> bool:
        """Whether authorization asks the policies."""
        return self.authorization_mode is AuthorizationMode.POLICY


def boot_objections(settings: Settings, *, stdio: bool = False) -> list[str]:
    """Why a process with these settings must not start; `stdio` asks for the process that serves MCP over stdio."""
    return [
        *_guards(settings),
        *_plant_guards(settings),
        *_work_guards(settings),
        *_model_guards(settings),
        *_engine_guards(settings),
        *provider_objections(settings.identity_providers),
        *(_stdio_guards(settings) if stdio else ()),
    ]


def bootstrap_awaits_binding(settings: Settings) -> bool:
    """Whether the bootstrap principal must be named by a stored binding, because configuration names it nowhere."""
    configured = {binding.actor_id for provider in settings.identity_providers for binding in provider.subject_bindings}
    bootstrap = settings.bootstrap_principal_id
    return settings.production and settings.enforced and bootstrap is not None and bootstrap not in configured


def bootstrap_objections(settings: Settings, stored: Iterable[UUID]) -> list[str]:
    """The guard that needs the database: nobody can log in as a bootstrap principal that no binding names."""
    if not bootstrap_awaits_binding(settings) or settings.bootstrap_principal_id in set(stored):
        return []
    return [
        "BOOTSTRAP_PRINCIPAL_ID is bound to no token subject, so nobody could act as it; add a subject binding for it to "
        "IDENTITY_PROVIDERS, or unset it."
    ]


def provider_objections(providers: Sequence[IdentityProvider]) -> list[str]:
    """Why these identity providers cannot be used, each alone and all together."""
    found = [
        f"Identity provider {number} ({provider.issuer}) {fault}"
        for number, provider in enumerate(providers, start=1)
        for fault in _provider_faults(provider)
    ]
    issuers = Counter(provider.issuer for provider in providers)
    found += [
        f"IDENTITY_PROVIDERS lists the issuer {issuer} {count} times; merge the entries into one."
        for issuer, count in issuers.items()
        if count > 1
    ]
    pairs = Counter((provider.issuer, binding.subject) for provider in providers for binding in provider.subject_bindings)
    found += [
        f"IDENTITY_PROVIDERS binds a subject of {issuer} more than once; keep one binding for each subject."
        for issuer in dict.fromkeys(issuer for (issuer, _), count in pairs.items() if count > 1)
    ]
    if sum(provider.introspection_url is not None for provider in providers) > 1:
        found.append(
            "More than one identity provider has an introspection_url, so a token that names no issuer could belong to "
            "either; keep one and use jwks_url for the others."
        )
    return found


def shown_settings(settings: Settings) -> dict[str, Any]:
    """Every setting under its variable's name, as plain data with secrets, passwords and token subjects hidden."""
    shown = settings.model_dump(mode="json")
    if settings.database_url is not None:
        shown["database_url"] = _without_password(settings.database_url)
    for provider in shown["identity_providers"]:
        for name in ("jwks_url", "introspection_url"):
            provider[name] = provider[name] and _without_password(provider[name])
        provider["introspection_client_secret"] = provider["introspection_client_secret"] and HIDDEN
        for binding in provider["subject_bindings"]:
            binding["subject"] = HIDDEN
    for name in ("anthropic_api_key", "openai_api_key"):
        shown[name] = shown[name] and HIDDEN
    for name in ("anthropic_base_url", "openai_base_url"):
        shown[name] = shown[name] and _without_password(shown[name])
    shown["compute_environment"] = dict.fromkeys(settings.compute_environment, HIDDEN)
    return {name.upper(): value for name, value in shown.items()}


def _guards(settings: Settings) -> Iterator[str]:
    tier = f"APP_ENV={settings.app_env}"
    if settings.production and not settings.require_authenticated_principal:
        yield f"{tier} answers authenticated callers only; set REQUIRE_AUTHENTICATED_PRINCIPAL=true."
    if settings.require_authenticated_principal and not settings.identity_providers:
        yield (
            "REQUIRE_AUTHENTICATED_PRINCIPAL=true without an identity provider would lock everyone out; configure "
            "IDENTITY_PROVIDERS."
        )
    if settings.enforced and settings.app_env != "test" and not settings.require_authenticated_principal:
        yield (
            "AUTHORIZATION_MODE=policy judges principals that anybody could claim to be; set "
            "REQUIRE_AUTHENTICATED_PRINCIPAL=true."
        )
    if settings.production and not settings.enforced and not settings.allow_permissive_authz:
        yield (
            f"{tier} with AUTHORIZATION_MODE=permissive lets every caller do everything; set AUTHORIZATION_MODE=policy, or "
            "ALLOW_PERMISSIVE_AUTHZ=true if that is meant."
        )
    if settings.production:
        for number, provider in enumerate(settings.identity_providers, start=1):
            for flag in ("allow_insecure_jwks_url", "allow_insecure_introspection_url"):
                if getattr(provider, flag):
                    yield (
                        f"Identity provider {number} ({provider.issuer}) sets {flag}, which {tier} does not accept; remove "
                        "it and use https."
                    )
    for name in ("bootstrap_principal_id", "mcp_stdio_principal_id"):
        if getattr(settings, name) == NIL:
            yield f"{name.upper()} is the nil UUID, which stands for the service itself; give the id of an actor."
    if settings.bootstrap_principal_id in SEEDED_IDS:
        yield (
            f"BOOTSTRAP_PRINCIPAL_ID is {settings.bootstrap_principal_id}, which is an agent of the service itself; choose "
            "another id for the administrator."
        )


def _plant_guards(settings: Settings) -> Iterator[str]:
    for prefix in _repeated(route.prefix for route in settings.control_routes):
        yield f"CONTROL_ROUTES lists the prefix {prefix!r} more than once; keep one route for each prefix."
    for address in _repeated(device.address for device in settings.simulated_devices):
        yield f"SIMULATED_DEVICES lists {address} more than once; keep one device at each address."
    for code in _repeated(supply.code for supply in settings.monitored_supplies):
        yield f"MONITORED_SUPPLIES lists {code} more than once; keep one signal for each supply."
    monitored = {
        "MONITORED_ENCLOSURES": settings.monitored_enclosures.values(),
        "MONITORED_SUPPLIES": [supply.signal for supply in settings.monitored_supplies],
    }
    for variable, signals in monitored.items():
        for signal in signals if settings.control_routes else ():
            if not any(signal.startswith(route.prefix) for route in settings.control_routes):
                yield f"{variable} names the signal {signal}, which no route leads to; add its prefix to CONTROL_ROUTES."
    for name in ("simulated_signals", "simulated_devices"):
        if settings.production and getattr(settings, name):
            yield (
                f"{name.upper()} makes up what the plant says, which APP_ENV={settings.app_env} does not accept; unset it."
            )


def _work_guards(settings: Settings) -> Iterator[str]:
    if settings.compute_substrate is ComputeSubstrate.LOCAL_PROCESS and settings.compute_job_directory is None:
        yield "COMPUTE_SUBSTRATE=local_process needs a place for its jobs; set COMPUTE_JOB_DIRECTORY to a directory."
    modelling = [name.value for name in settings.decide_substrates if name is not DecideSubstrate.LLM]
    if modelling and not all(find_spec(library) for library in ("scipy", "sklearn")):
        yield f"DECIDE_SUBSTRATES offers {', '.join(modelling)}, whose libraries are not installed; install baton[optimize]."


def _model_guards(settings: Settings) -> Iterator[str]:
    for name in ("run_debriefer_model", "caution_drafter_model", "decide_model"):
        if (chosen := getattr(settings, name)) is None:
            continue
        try:
            model = named_model(chosen)
        except ValueError as error:
            yield f"{name.upper()} {error}."
        else:
            if name == "decide_model" and model == OFFLINE:
                yield "DECIDE_MODEL is the offline model, which does not steer; name the model of a provider."
    if DecideSubstrate.LLM in settings.decide_substrates and settings.decide_model is None:
        yield "DECIDE_SUBSTRATES offers llm without a model; set DECIDE_MODEL to provider/model."


def idle_agents(settings: Settings) -> list[str]:
    """The agents that are on and whose model nobody here can ask, so that they start nothing; each with what mends it."""
    chosen = {
        "RunDebriefer": ("RUN_DEBRIEFER_MODEL", settings.run_debriefer_enabled, settings.run_debriefer_model),
        "CautionDrafter": ("CAUTION_DRAFTER_MODEL", settings.caution_drafter_enabled, settings.caution_drafter_model),
    }
    reachable = {
        OFFLINE.provider: True,
        "anthropic": settings.anthropic_api_key is not None,
        "openai": settings.openai_api_key is not None or settings.openai_base_url is not None,
    }
    return [
        f"{agent} is on and does nothing: {name} is {model}, and there are no credentials of that provider; set "
        f"{model.partition('/')[0].upper()}_API_KEY."
        for agent, (name, on, model) in chosen.items()
        if on and model is not None and not reachable.get(model.partition("/")[0], False)
    ]


def _engine_guards(settings: Settings) -> Iterator[str]:
    if (settings.worker_deployment_name is None) != (settings.worker_build_id is None):
        yield "WORKER_DEPLOYMENT_NAME and WORKER_BUILD_ID name a worker together; set both, or none."
    if settings.trace_exporter is TraceExporter.OTLP and not _installed(OTLP_EXPORTER):
        yield "TRACE_EXPORTER=otlp needs an exporter that is not installed; install baton[otlp], or choose console or none."


def _installed(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:  # not even what it is a part of
        return False


def _repeated(texts: Iterable[str]) -> list[str]:
    return [text for text, count in Counter(texts).items() if count > 1]


def _stdio_guards(settings: Settings) -> Iterator[str]:
    if settings.production:
        yield f"MCP over stdio carries no token and is not served under APP_ENV={settings.app_env}; use /mcp over HTTP."
    if settings.enforced and settings.mcp_stdio_principal_id is None:
        yield "AUTHORIZATION_MODE=policy needs to know whom MCP over stdio acts for; set MCP_STDIO_PRINCIPAL_ID to an actor."


def _provider_faults(provider: IdentityProvider) -> Iterator[str]:
    if provider.jwks_url is None and provider.introspection_url is None:
        yield "has neither jwks_url nor introspection_url, so its tokens cannot be checked; give one of them."
    secret = provider.introspection_client_secret
    if provider.introspection_url is not None and not (
        provider.introspection_client_id and secret and secret.get_secret_value()
    ):
        yield "has an introspection_url without credentials; give introspection_client_id and introspection_client_secret."
    if not provider.audiences:
        yield "has no audiences, so all its tokens would be refused; give one for each surface its tokens are meant for."
    if unusable := [name for name in provider.allowed_algorithms if name not in SIGNATURE_ALGORITHMS]:
        yield f"allows {', '.join(unusable)}; only public-key algorithms are accepted: {', '.join(SIGNATURE_ALGORITHMS)}."
    if not provider.allowed_algorithms:
        yield "has an empty list of allowed_algorithms; name at least one, or leave the list out for RS256 and ES256."
    for name, insecure in (
        ("jwks_url", provider.allow_insecure_jwks_url),
        ("introspection_url", provider.allow_insecure_introspection_url),
    ):
        url = getattr(provider, name)
        if url is not None and not _reaches(url, ("http", "https") if insecure else ("https",)):
            yield f"has a {name} that is no https URL; use https (in development, allow_insecure_{name} admits http)."
    if any(binding.actor_id == NIL for binding in provider.subject_bindings):
        yield "binds a subject to the nil UUID, which stands for the service itself; give the id of an actor."
    for taken in sorted({binding.actor_id for binding in provider.subject_bindings} & SEEDED_IDS):
        yield f"binds a subject to {taken}, which is an agent of the service itself; choose another id for the actor."


def _reaches(url: str, schemes: tuple[str, ...]) -> bool:
    try:
        parts = urlsplit(url)
        return parts.scheme in schemes and bool(parts.hostname) and parts.port != 0 and not re.search(r"\s", url)
    except ValueError:
        return False


def _without_password(url: str) -> str:
    """The URL or connection text without what stands before its host and without password parameters."""
    hostward = re.sub(r"//.*@", f"//{HIDDEN}@", url, flags=re.DOTALL)
    return re.sub(r"(password\s*=\s*)('(?:\\.|[^'\\])*'|[^&\s]*)", rf"\g<1>{HIDDEN}", hostward, flags=re.IGNORECASE)
