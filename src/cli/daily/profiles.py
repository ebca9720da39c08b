"""Profiles: the services that a person works with, by name, and how they are signed in there. One file, private to them."""

import json
import os
import re
import time
import tomllib
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path

from baton.cli.messages import refuse

FIRST_PROFILE = "default"  # the name of the profile that a sign-in makes where none is named
PROFILE_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
RENEWAL_SECONDS = 30.0  # a token that ends sooner than this is renewed first


@dataclass(frozen=True)
class Profile:
    """One service, and the token of the person who signed in there; `token_url` and `client_id` are where it is renewed."""

    url: str
    token: str | None = field(default=None, repr=False)
    refresh_token: str | None = field(default=None, repr=False)
    expires_at: float | None = None  # in seconds since 1970
    token_url: str | None = None
    client_id: str | None = None

    @property
    def is_ending(self) -> bool:
        """Whether its token has expired, or is about to."""
        return self.expires_at is not None and self.expires_at - time.time() < RENEWAL_SECONDS

    @property
    def signed_out(self) -> "Profile":
        """The same service without anybody signed in."""
        return Profile(self.url)


@dataclass(frozen=True)
class Profiles:
    """Every profile by its name, and the one that is used where none is named."""

    entries: dict[str, Profile] = field(default_factory=dict)
    current: str | None = None

    def with_entry(self, name: str, profile: Profile) -> "Profiles":
        """Return these with one more; the first of all is used where none is named."""
        return Profiles({**self.entries, name: profile}, self.current or name)

    def without_entry(self, name: str) -> "Profiles":
        """Return these without one."""
        kept = {one: profile for one, profile in self.entries.items() if one != name}
        return Profiles(kept, None if self.current == name else self.current)

    def with_current(self, name: str) -> "Profiles":
        """Return these with another one that is used where none is named."""
        return replace(self, current=name)

    def find_profile(self, name: str) -> Profile:
        """Return the profile of this name, or exit where there is none."""
        if name not in self.entries:
            known = f"there are {', '.join(sorted(self.entries))}" if self.entries else "there are none yet"
            refuse(f"There is no profile {name}; {known}. Add it with `baton profile add {name} URL`.")
        return self.entries[name]


def profiles_path() -> Path:
    """Return where the profiles of this person are kept."""
    home = os.environ.get("XDG_CONFIG_HOME") or "~/.config"
    return Path(home).expanduser() / "baton" / "profiles.toml"


def read_profiles() -> Profiles:
    """Return the profiles of this person, or exit where their file cannot be used."""
    path = profiles_path()
    try:
        stored = tomllib.loads(path.read_text(encoding="utf-8"))
        current, tables = stored.get("current"), stored.get("profiles", {})
        known = {one.name for one in fields(Profile)}
        entries = {
            name: Profile(**{key: value for key, value in table.items() if key in known}) for name, table in tables.items()
        }
    except FileNotFoundError:
        return Profiles()
    except (OSError, ValueError, TypeError, AttributeError) as error:
        refuse(f"{path} cannot be used ({error}); correct it, or remove it and sign in again.")
    return Profiles(entries, current if current in entries else None)


def write_profiles(profiles: Profiles) -> None:
    """Write the profiles, completely or not at all, for the eyes of this person alone."""
    path = profiles_path()
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with open(draft, "w", opener=open_private, encoding="utf-8") as file:
            file.write(profiles_text(profiles))
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
    except OSError as error:
        refuse(f"{path} cannot be written: {error.strerror}.")


def open_private(path: str, flags: int) -> int:
    """Open a file that nobody else can read."""
    return os.open(path, flags, 0o600)


def profiles_text(profiles: Profiles) -> str:
    """Return the profiles as TOML."""
    lines = [] if profiles.current is None else [f"current = {toml_value(profiles.current)}"]
    for name, profile in sorted(profiles.entries.items()):
        lines += ["", f"[profiles.{name}]"]
        lines += [f"{key} = {toml_value(value)}" for key, value in asdict(profile).items() if value is not None]
    return "\n".join(lines) + "\n"


def toml_value(value: object) -> str:
    """Return a text or a number as TOML, which writes both as JSON does but for one character."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def require_profile_name(name: str) -> str:
    """Return a name that a profile may have, or exit."""
    if PROFILE_NAME.fullmatch(name) is None:
        refuse(f"{name!r} is no name of a profile; use letters, digits, - and _, at most 64.")
    return name
