"""Guards against settings that no process may start with, or that leave an agent idle; each says how to mend it."""

import os
from collections import Counter
from collections.abc import Iterable, Iterator
from importlib.util import find_spec
from ipaddress import ip_address
from os.path import isabs, normpath
from urllib.parse import urlsplit
from uuid import UUID

from baton.application.identity import is_absolute_url, provider_objections
from baton.application.language_models import OFFLINE, parse_model_name
from baton.application.plan_settings import PlanExecutorKind, touches_objection
from baton.application.settings import ComputeSubstrate, PidMinter, Settings, TraceExporter
from baton.domain.access.actor import SEEDED_AGENT_IDS
from baton.domain.kernel import NIL
from baton.domain.steering.steering import DecideSubstrate

OTLP_EXPORTER = "opentelemetry.exporter.otlp.proto.http.trace_exporter"


def boot_objections(settings: Settings, *, stdio: bool = False) -> list[str]:
    """Return why a process with these settings must not start; `stdio` asks for the process that serves MCP over stdio."""
    guards = (
        *(_access_guards, _plant_guards, _work_guards, _plan_guards, _minter_guards),
        *(_catalogue_guards, _peer_guards, _model_guards, _engine_guards),
    )
    objections = [objection for guard in guards for objection in guard(settings)]
    stdio_objections = _stdio_guards(settings) if stdio else ()
    return [*objections, *provider_objections(settings.identity_providers), *stdio_objections]


def _access_guards(settings: Settings) -> Iterator[str]:
    tier, demanded = f"APP_ENV={settings.app_env}", "REQUIRE_AUTHENTICATED_PRINCIPAL=true"
    if settings.production and not settings.require_authenticated_principal:
        yield f"{tier} answers authenticated callers only; set {demanded}."
    if settings.require_authenticated_principal and not settings.identity_providers:
        yield f"{demanded} without an identity provider would lock everyone out; configure IDENTITY_PROVIDERS."
    if settings.enforced and settings.app_env != "test" and not settings.require_authenticated_principal:
        yield f"AUTHORIZATION_MODE=policy judges principals that anybody could claim to be; set {demanded}."
    if settings.production and not settings.enforced and not settings.allow_permissive_authz:
        remedy = "set AUTHORIZATION_MODE=policy, or ALLOW_PERMISSIVE_AUTHZ=true if that is meant"
        yield f"{tier} with AUTHORIZATION_MODE=permissive lets every caller do everything; {remedy}."
    for number, provider in enumerate(settings.identity_providers, start=1):
        for flag in ("allow_insecure_jwks_url", "allow_insecure_introspection_url"):
            if settings.production and getattr(provider, flag):
                which = f"Identity provider {number} ({provider.issuer})"
                yield f"{which} sets {flag}, which {tier} does not accept; remove it and use https."
    for name in ("bootstrap_principal_id", "mcp_stdio_principal_id"):
        if getattr(settings, name) == NIL:
            yield f"{name.upper()} is the nil UUID, which stands for the service itself; give the id of an actor."
    if settings.bootstrap_principal_id in SEEDED_AGENT_IDS:
        taken = f"{settings.bootstrap_principal_id}, which is an agent of the service itself"
        yield f"BOOTSTRAP_PRINCIPAL_ID is {taken}; choose another id for the administrator."


def _plant_guards(settings: Settings) -> Iterator[str]:
    for prefix in _repeated_texts(route.prefix for route in settings.control_routes):
        yield f"CONTROL_ROUTES lists the prefix {prefix!r} more than once; keep one route for each prefix."
    for address in _repeated_texts(device.address for device in settings.simulated_devices):
        yield f"SIMULATED_DEVICES lists {address} more than once; keep one device at each address."
    for code in _repeated_texts(supply.code for supply in settings.monitored_supplies):
        yield f"MONITORED_SUPPLIES lists {code} more than once; keep one signal for each supply."
    monitored = [("MONITORED_ENCLOSURES", signal) for signal in settings.monitored_enclosures.values()]
    monitored += [("MONITORED_SUPPLIES", supply.signal) for supply in settings.monitored_supplies]
    for variable, signal in monitored if settings.control_routes else ():
        if not any(signal.startswith(route.prefix) for route in settings.control_routes):
            yield f"{variable} names the signal {signal}, which no route leads to; add its prefix to CONTROL_ROUTES."
    for name in ("simulated_signals", "simulated_devices"):
        if settings.production and getattr(settings, name):
            yield f"{name.upper()} makes up what the plant says, {_not_accepted(settings)}; unset it."


def _work_guards(settings: Settings) -> Iterator[str]:
    if settings.compute_substrate is ComputeSubstrate.LOCAL_PROCESS and settings.compute_job_directory is None:
        yield "COMPUTE_SUBSTRATE=local_process needs a place for its jobs; set COMPUTE_JOB_DIRECTORY to a directory."
    made_up = settings.compute_substrate is ComputeSubstrate.IN_MEMORY
    if made_up and settings.production:
        remedy = "set COMPUTE_SUBSTRATE=local_process and COMPUTE_JOB_DIRECTORY"
        yield f"COMPUTE_SUBSTRATE=in_memory makes up what programs bring, {_not_accepted(settings)}; {remedy}."
    for program in () if made_up else settings.compute_programs:
        if not isabs(program) or normpath(program) != program:
            yield f"COMPUTE_PROGRAMS lists {program}, which is no plain absolute path; say where the program is."
    for root in map(str, settings.data_roots):
        if not isabs(root) or normpath(root) != root:
            yield f"DATA_ROOTS lists {root}, which is no plain absolute path; say where the data are."
        elif root == "/":
            yield "DATA_ROOTS lists /, which would let callers have every file of the machine read; name the directories."
    if settings.compute_user == "root":
        yield "COMPUTE_USER=root lets programs read and change everything; name a user of their own."
    built_in = [name for name in settings.decide_substrates if isinstance(name, DecideSubstrate)]
    modelling = [name.value for name in built_in if name is not DecideSubstrate.LLM]
    if modelling and not all(find_spec(library) for library in ("scipy", "sklearn")):
        offered = ", ".join(modelling)
        yield f"DECIDE_SUBSTRATES offers {offered}, whose libraries are not installed; install baton-facility[optimize]."


def _plan_guards(settings: Settings) -> Iterator[str]:
    for name in _repeated_texts(executor.name for executor in settings.plan_executors):
        yield f"PLAN_EXECUTORS lists {name} more than once; give each executor a name of its own."
    for executor in settings.plan_executors:
        kind, where = executor.kind, f"PLAN_EXECUTORS has {executor.name} at an address"
        if kind == PlanExecutorKind.IN_MEMORY and settings.production:
            yield f"PLAN_EXECUTORS makes up what {executor.name} carries out, {_not_accepted(settings)}; remove it."
        if kind == PlanExecutorKind.BLUEAPI and not is_absolute_url(executor.address, ("http", "https")):
            yield f"{where} that is no URL; begin it with https://."
        if kind == PlanExecutorKind.QUEUESERVER and not executor.address.startswith(("tcp://", "ipc://")):
            yield f"{where} that 0MQ does not know; begin it with tcp://."
        if kind == PlanExecutorKind.QUEUESERVER and not find_spec("zmq"):
            yield f"PLAN_EXECUTORS has the queueserver {executor.name}, which needs 0MQ; install baton-facility[bluesky]."
        if executor.credentials_env is not None and not os.environ.get(executor.credentials_env):
            yield f"PLAN_EXECUTORS takes the credentials of {executor.name} from {executor.credentials_env}; set it."
        if (objection := touches_objection(executor)) is not None:
            yield objection


def _minter_guards(settings: Settings) -> Iterator[str]:
    if settings.production and settings.pid_minter is PidMinter.DEVELOPMENT:
        yield f"PID_MINTER=development makes identifiers up, {_not_accepted(settings)}; set PID_MINTER=datacite, or none."
    if settings.pid_minter is not PidMinter.DATACITE:
        return
    needed = ("datacite_prefix", "datacite_repository_id", "datacite_password")
    if missing := [name.upper() for name in needed if getattr(settings, name) is None]:
        yield f"PID_MINTER=datacite registers as a repository of DataCite; set {', '.join(missing)}."
    if settings.production and not is_absolute_url(settings.datacite_address, ("https",)):
        yield f"DATACITE_ADDRESS sends a password without https, which APP_ENV={settings.app_env} refuses; use https."
    templates = settings.address_templates
    if not all(is_absolute_url(template, ("http", "https")) for template in templates.values()):
        name = "LANDING_PAGE_TEMPLATES has an address that" if settings.landing_page_templates else "LANDING_PAGE_TEMPLATE"
        yield f"{name} is no absolute URL, so identifiers would lead nowhere; begin it with https://."
    if not templates and settings.public_base_url is None:
        remedy = "set PUBLIC_BASE_URL, or LANDING_PAGE_TEMPLATES to the addresses of your own pages"
        yield f"PID_MINTER=datacite registers identifiers that would lead nowhere; {remedy}."


def _catalogue_guards(settings: Settings) -> Iterator[str]:
    needed = ("scicat_token", "scicat_owner_group", "scicat_contact_email")
    if settings.scicat_address is not None:
        if missing := [name.upper() for name in needed if getattr(settings, name) is None]:
            yield f"SCICAT_ADDRESS enters datasets in the name of the facility; set {', '.join(missing)}."
        if settings.production and not is_absolute_url(settings.scicat_address, ("https",)):
            yield f"SCICAT_ADDRESS sends a token without https, which APP_ENV={settings.app_env} refuses; use https."
    if settings.tiled_directory is not None:
        if not settings.tiled_directory.is_absolute():
            yield f"TILED_DIRECTORY is {settings.tiled_directory}, which is no absolute path; say where the links belong."
        if not settings.data_roots:
            yield "TILED_DIRECTORY links files under DATA_ROOTS, and there are none; name the directories of the data."


def _peer_guards(settings: Settings) -> Iterator[str]:
    bound = Counter(id for peer in settings.federation_peers.values() for id in peer.accounts)
    for id in sorted(id for id, count in bound.items() if count > 1):
        yield f"FEDERATION_PEERS lists the account {id} of more than one peer; give each peer accounts of its own."
    for code, peer in settings.federation_peers.items():
        parts = urlsplit(peer.address or "https:")
        if settings.production and parts.scheme != "https" and not is_on_this_machine(parts.netloc):
            yield f"FEDERATION_PEERS reaches {code} without https, which APP_ENV={settings.app_env} refuses; use https."
        if "@" in parts.netloc:
            yield f"FEDERATION_PEERS has a password in the address of {code}; give a token instead."
        if code == settings.self_facility_code:
            yield f"FEDERATION_PEERS lists {code}, which is this facility itself; leave it out."


def _model_guards(settings: Settings) -> Iterator[str]:
    for name in ("run_debriefer_model", "caution_drafter_model", "decide_model"):
        if (chosen := getattr(settings, name)) is None:
            continue
        try:
            model = parse_model_name(chosen)
        except ValueError as error:
            yield f"{name.upper()} {error}."
        else:
            if name == "decide_model" and model == OFFLINE:
                yield "DECIDE_MODEL is the offline model, which does not steer; name the model of a provider."
    if DecideSubstrate.LLM in settings.decide_substrates and settings.decide_model is None:
        yield "DECIDE_SUBSTRATES offers llm without a model; set DECIDE_MODEL to provider/model."


def _engine_guards(settings: Settings) -> Iterator[str]:
    address = settings.temporal_address
    if settings.production and address is not None and not settings.temporal_tls and not is_on_this_machine(address):
        danger = "in the clear, where anybody can disturb what is conducted"
        yield f"APP_ENV={settings.app_env} reaches Temporal at {address} {danger}; set TEMPORAL_TLS=true."
    if (settings.temporal_tls_cert is None) != (settings.temporal_tls_key is None):
        yield "TEMPORAL_TLS_CERT and TEMPORAL_TLS_KEY go together; set both, or none."
    for name in ("temporal_tls_ca", "temporal_tls_cert", "temporal_tls_key"):
        if (path := getattr(settings, name)) is not None and not path.is_file():
            yield f"{name.upper()} names {path}, which is no file; correct it, or unset it."
    for name in ("temporal_tls_ca", "temporal_tls_cert", "temporal_tls_key", "temporal_api_key"):
        if getattr(settings, name) is not None and not settings.temporal_tls:
            yield f"{name.upper()} counts over TLS only; set TEMPORAL_TLS=true, or unset it."
    if (settings.worker_deployment_name is None) != (settings.worker_build_id is None):
        yield "WORKER_DEPLOYMENT_NAME and WORKER_BUILD_ID name a worker together; set both, or none."
    if settings.trace_exporter is TraceExporter.OTLP and not _is_installed(OTLP_EXPORTER):
        remedy = "install baton-facility[otlp], or choose console or none"
        yield f"TRACE_EXPORTER=otlp needs an exporter that is not installed; {remedy}."


def is_on_this_machine(address: str) -> bool:
    """Return whether a host:port is a loopback address."""
    host = address.rpartition(":")[0].strip("[]") or address
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _stdio_guards(settings: Settings) -> Iterator[str]:
    if settings.production:
        yield f"MCP over stdio carries no token and is not served under APP_ENV={settings.app_env}; use /mcp over HTTP."
    if settings.enforced and settings.mcp_stdio_principal_id is None:
        yield "AUTHORIZATION_MODE=policy needs to know whom MCP over stdio acts for; set MCP_STDIO_PRINCIPAL_ID to an actor."


def bootstrap_awaits_binding(settings: Settings) -> bool:
    """Return whether only a stored binding can name the bootstrap principal, because configuration does not."""
    configured = {binding.actor_id for provider in settings.identity_providers for binding in provider.subject_bindings}
    bootstrap = settings.bootstrap_principal_id
    return settings.production and settings.enforced and bootstrap is not None and bootstrap not in configured


def bootstrap_objections(settings: Settings, stored: Iterable[UUID]) -> list[str]:
    """Return the objection to a bootstrap principal that no binding, configured or stored, names."""
    if not bootstrap_awaits_binding(settings) or settings.bootstrap_principal_id in set(stored):
        return []
    remedy = "add a subject binding for it to IDENTITY_PROVIDERS, or unset it"
    return [f"BOOTSTRAP_PRINCIPAL_ID is bound to no token subject, so nobody could act as it; {remedy}."]


def database_objections(settings: Settings, *, can_rewrite_log: bool) -> list[str]:
    """Return the objection to a production login that can rewrite the log."""
    if not settings.production or not can_rewrite_log:
        return []
    login = "log in as baton_runtime, or as a member of it and of nothing else"
    remedy = f"{login}, and give the owner's login to the projector as DATABASE_OWNER_URL"
    return [f"DATABASE_URL logs in as a user who can rewrite the log, {_not_accepted(settings)}; {remedy}."]


def idle_agents(settings: Settings) -> list[str]:
    """Return the agents that are on although their model cannot be asked here, each with what mends it."""
    chosen = (
        ("RunDebriefer", "RUN_DEBRIEFER_MODEL", settings.run_debriefer_enabled and settings.run_debriefer_model),
        ("CautionDrafter", "CAUTION_DRAFTER_MODEL", settings.caution_drafter_enabled and settings.caution_drafter_model),
    )
    reachable = {
        OFFLINE.provider: True,
        "anthropic": settings.anthropic_api_key is not None,
        "openai": settings.openai_api_key is not None or settings.openai_base_url is not None,
    }
    return [
        f"{agent} is on and does nothing: {name} is {model}, and there are no credentials of that provider; set "
        f"{model.partition('/')[0].upper()}_API_KEY."
        for agent, name, model in chosen
        if model and not reachable.get(model.partition("/")[0], False)
    ]


def _not_accepted(settings: Settings) -> str:
    return f"which APP_ENV={settings.app_env} does not accept"


def _is_installed(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:  # not even what it is a part of
        return False


def _repeated_texts(texts: Iterable[str]) -> list[str]:
    return [text for text, count in Counter(texts).items() if count > 1]
