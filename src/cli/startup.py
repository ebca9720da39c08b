"""What every process does first and last: load settings, prepare the database, refuse in sentences, stop on signals."""

import asyncio
import gc
import re
import signal
from collections.abc import Callable
from pathlib import Path

import psycopg
from pydantic import ValidationError
from pydantic_settings import SettingsError

from baton import __version__
from baton.application import boot_guards
from baton.application.settings import Settings
from baton.application.telemetry import configure_logging, protect_streams
from baton.cli.embedded.process import wait_until
from baton.cli.messages import refuse
from baton.cli.stack_note import stack_address
from baton.domain.shared.field_faults import fault_text

DATABASE_FAULT = "The database cannot be used"
STOP_SECONDS = 18  # what is in progress has 5 seconds to end, and what it started twice as many to be halted
MIGRATION_WAIT_SECONDS = 100.0


def load_settings(*, stdio: bool = False) -> Settings:
    """Return the settings of the environment, or exit with what is wrong with them."""
    try:
        settings = Settings()
    except (SettingsError, ValidationError) as error:
        refuse(*settings_faults(error))
    from baton.infrastructure.plugins import plugin_objections

    if objections := [*boot_guards.boot_objections(settings, stdio=stdio), *plugin_objections(settings)]:
        refuse(*objections)
    return settings


def settings_faults(error: SettingsError | ValidationError) -> list[str]:
    """Return a sentence for each unreadable variable; values are not quoted, because some are secret."""
    if isinstance(error, SettingsError):
        field = re.search(r'field "(\w+)"', str(error))
        return [f"{field[1].upper() if field else 'A setting'} is no valid JSON; correct it or unset it."]
    sentences = []
    for fault in error.errors(include_url=False):
        variable, *inside = fault["loc"]
        name = str(variable).upper() + "".join(f"[{key}]" if isinstance(key, int) else f".{key}" for key in inside)
        sentences.append(f"{name} cannot be used: {fault_text(fault)}; correct it.")
    return sentences


def required_database(settings: Settings) -> str:
    """Return the database URL, or exit where none is set."""
    if settings.database_url is None:
        refuse("DATABASE_URL is not set; point it at a PostgreSQL, or use `baton up`, which brings its own.")
    return settings.database_url


def prepare_process(process: str, *, stdio: bool = False, data_dir: Path | None = None) -> Settings:
    """Return the settings of a process of this kind once its database is ready for it, or exit with what is in the way."""
    settings = load_settings(stdio=stdio)
    if data_dir is not None:
        settings = with_stack_servers(settings, data_dir)
    protect_streams(stdout=not stdio)
    build = __version__ if settings.worker_build_id is None else f"{__version__}+{settings.worker_build_id}"
    configure_logging(settings.log_level, process, build)
    url = required_database(settings)
    prepare_database(settings)
    if settings.production:
        from baton.infrastructure.postgres.schema_version import can_rewrite_log

        if objections := boot_guards.database_objections(settings, can_rewrite_log=can_rewrite_log(url)):
            refuse(*objections)
    if boot_guards.bootstrap_awaits_binding(settings):
        with psycopg.connect(url) as connection:
            stored = connection.execute("SELECT actor_id FROM access_subject_binding").fetchall()
        if objections := boot_guards.bootstrap_objections(settings, [row[0] for row in stored]):
            refuse(*objections)
    return settings


def with_stack_servers(settings: Settings, data_dir: Path) -> Settings:
    """Return the settings with the servers of the stack on this data directory, where none are set."""
    unset = ["database_url", "database_owner_url"] if settings.database_url is None else []
    unset += ["temporal_address"] if settings.temporal_address is None else []
    settings = settings.model_copy(update={name: stack_address(data_dir, name) for name in unset})
    if settings.database_url is None:
        refuse(f"No database: DATABASE_URL is not set and no stack runs on {data_dir}; start one with `baton up`.")
    return settings


def prepare_database(settings: Settings) -> None:
    """Migrate the database where this process may, which several may try at once; otherwise wait until another has."""
    from baton.infrastructure.postgres.adoption import RecordAheadError
    from baton.infrastructure.postgres.schema_version import NewerDatabaseError, has_current_form, may_migrate

    url = required_database(settings)
    owner_url = settings.database_owner_url
    try:
        if has_current_form(url):
            return
        if owner_url is not None or may_migrate(url):
            _migrate(owner_url or url)
        elif not wait_until(lambda: has_current_form(url), MIGRATION_WAIT_SECONDS, 0.25):
            remedy = "start `baton projector` with the owner's login in DATABASE_OWNER_URL"
            refuse(f"The database lacks migrations, which the user of DATABASE_URL may not apply; {remedy}.")
    except (NewerDatabaseError, RecordAheadError) as error:
        refuse(str(error))
    except psycopg.Error as error:
        refuse(f"{DATABASE_FAULT}: {one_line(error)}. Start it, or correct DATABASE_URL.")


def _migrate(url: str) -> None:
    import sqlalchemy

    from baton.infrastructure.postgres.migrate import migrate

    try:
        migrate(url)
    except sqlalchemy.exc.DBAPIError as error:
        refuse(f"The database cannot be migrated: {one_line(error.orig)}. Nothing was changed; mend that and start again.")


def one_line(error: object) -> str:
    """Return a driver's message without line breaks and final full stop."""
    return " ".join(str(error).split()).rstrip(".")


def start_garbage_collection() -> None:
    """Enable the collector, which `main` disabled, and exempt what was loaded so far: it stays until the process ends."""
    gc.freeze()
    gc.enable()


def stop_on_signals(stop: Callable[[], object]) -> None:
    """Call `stop` in the running loop on SIGTERM and SIGINT, and bound the time that stopping takes."""

    def handle() -> None:
        limit_stop_time()
        stop()

    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, handle)


def limit_stop_time() -> None:
    """Have the kernel end this process after STOP_SECONDS: the parent that would do so may have been killed."""
    if not signal.getitimer(signal.ITIMER_REAL)[0]:  # a second signal gives no more time
        signal.alarm(STOP_SECONDS)
