"""Documents from elsewhere in an order in which they can be understood: each behind its start and descriptor."""

from collections import Counter, deque
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from baton_bluesky.reduction import reduce_document

KEPT_SECONDS = 3_600.0
KEPT_DOCUMENTS = 10_000
ENDED_RUNS = 10_000
Document = Mapping[str, Any]


class KeptDocument(NamedTuple):
    """A document whose run or stream is not known yet, and when it came."""

    at: float
    name: str
    document: Document


class RunOrder:
    """Hands on what can be understood, keeps the rest for an hour, and counts what it gives up."""

    def __init__(self) -> None:
        self.runs: dict[str, list[tuple[str, Document]]] = {}
        """Of each open run the documents that the others refer to: its start, descriptors and resources."""
        self.given_up: Counter[str] = Counter()
        """Number of documents that belong to nothing known, by kind."""
        self._parts: dict[str, str] = {}
        """The run of each descriptor and resource."""
        self._ended: dict[str, None] = {}
        self._kept: deque[KeptDocument] = deque()

    @property
    def kept(self) -> int:
        """Number of documents that wait for what they belong to."""
        return len(self._kept)

    def take(self, name: str, document: Any, now: float) -> Iterator[tuple[str, Document]]:
        """Return what can be handed on now that this document has come."""
        if not isinstance(document, Mapping):
            self.given_up["unknown"] += 1
            return
        match self._place(name, document):
            case "ready":
                yield name, document
                if name in ("start", "descriptor", "resource", "stream_resource"):
                    yield from self._release_kept(now)
            case "unknown":
                self._keep(KeptDocument(now, name, document))

    def forget_old(self, now: float) -> None:
        """Give up what waited for an hour."""
        while self._kept and now - self._kept[0].at > KEPT_SECONDS:
            self.given_up[self._kept.popleft().name] += 1

    def _keep(self, kept: KeptDocument) -> None:
        if len(self._kept) >= KEPT_DOCUMENTS:
            self.given_up[self._kept.popleft().name] += 1
        self._kept.append(kept)

    def _release_kept(self, now: float) -> Iterator[tuple[str, Document]]:
        """Return what was kept and can be handed on, in the order in which it came."""
        progress = True
        while progress and self._kept:
            progress, waiting = False, list(self._kept)
            self._kept.clear()
            for kept in waiting:
                match self._place(kept.name, kept.document):
                    case "ready":
                        progress = True
                        yield kept.name, kept.document
                    case "unknown":
                        self._keep(kept)

    def _place(self, name: str, document: Document) -> str:
        """Return whether a document is ready, unknown or repeated; note what others refer to."""
        uid = document.get("uid")
        if name == "start":
            if not isinstance(uid, str) or uid in self.runs or uid in self._ended:
                return "repeated"
            self.runs[uid] = [(name, reduce_document(dict(document))[0])]
            return "ready"
        run = self._run_of(name, document)
        if run is None:
            return "unknown"
        if run in self._ended:
            return "repeated"
        if name in ("descriptor", "resource", "stream_resource") and isinstance(uid, str):
            if uid in self._parts:
                return "repeated"
            self._parts[uid] = run
            self.runs[run].append((name, reduce_document(dict(document))[0]))
        elif name == "stop":
            self._end(run)
        return "ready"

    def _run_of(self, name: str, document: Document) -> str | None:
        if name in ("descriptor", "stop", "resource", "stream_resource"):
            run = document.get("run_start")
            return run if isinstance(run, str) and (run in self.runs or run in self._ended) else None
        needed = {"stream_datum": ("stream_resource", "descriptor"), "datum": ("resource",), "datum_page": ("resource",)}
        parts = [self._parts.get(str(document.get(key))) for key in needed.get(name, ("descriptor",))]
        return None if None in parts else parts[0]

    def _end(self, run: str) -> None:
        del self.runs[run]
        self._ended[run] = None
        for uid in [uid for uid, of in self._parts.items() if of == run]:
            del self._parts[uid]
        if len(self._ended) > ENDED_RUNS:
            del self._ended[next(iter(self._ended))]
