"""Server-sent events: lines become frames, whichever way they come."""

from dataclasses import dataclass, field


@dataclass(frozen=True)
class ServerEvent:
    """One frame of a stream: its id, its kind and its data."""

    id: str | None
    event: str
    data: str


@dataclass
class FrameReader:
    """Puts the lines of a stream together; `last_id` is where to go on after a lost connection."""

    last_id: str | None = None
    _event: str = ""
    _data: list[str] = field(default_factory=list)

    def take(self, line: str) -> ServerEvent | None:
        """Take one line; return the frame that it ends."""
        if not line:
            ended = ServerEvent(self.last_id, self._event or "message", "\n".join(self._data)) if self._data else None
            self._event, self._data = "", []
            return ended
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        match name:
            case "event":
                self._event = value
            case "data":
                self._data.append(value)
            case "id":
                self.last_id = value
        return None

    def drop_partial(self) -> None:
        """Drop the lines of a frame that a lost connection has cut off."""
        self._event, self._data = "", []
