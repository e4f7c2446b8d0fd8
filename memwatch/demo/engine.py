"""The demo's loop: propose, compress, measure, keep or discard, verify, and again."""

from __future__ import annotations

import hashlib
import os
import threading
import time
from pathlib import Path

from msgspec import Struct, structs

from memwatch.agent import Entry, Experiment, ReadOnlyError, Run, Source
from memwatch.demo.builders import call_source, packed_source
from memwatch.demo.corpus import Corpus
from memwatch.demo.leak import Leak
from memwatch.demo.results import (
    Call,
    Metrics,
    Packed,
    Result,
    SearchState,
    Verified,
    metrics_of,
)
from memwatch.demo.search import Search, score_of
from memwatch.demo.settings import (
    FAILURES,
    Settings,
    build_dictionary,
    compressor,
    decompressor,
)
from memwatch.domain.errors import LogError

_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
_STATM = Path("/proc/self/statm")
_RETRY_S = 1.0
_LOOK_S = 0.1
_CHECKS = 5
_MANY = 100
_STATE = "state"
"""Key of the search's state in the tier `search`."""


class Pace(Struct, frozen=True):
    """How the demo spends its time."""

    core_share: float = 0.28
    """Of one core while it works."""
    step_s: float = 0.12
    """A step takes at least this long."""
    experiment_s: float = 1.5
    """An experiment takes at least about this long."""

    def rest_s(self, worked_s: float, steps: int) -> float:
        """Return how long to rest after one of `steps` steps, which took `worked_s` of work."""
        whole = max(self.step_s, worked_s / self.core_share, self.experiment_s / max(steps, 1))
        return max(whole - worked_s, 0.0)


NO_REST = Pace(core_share=1.0, step_s=0.0, experiment_s=0.0)
"""As fast as the machine allows."""


class Stopped(BaseException):
    """The engine was told to stop."""


class HardStop(BaseException):
    """The process passed its own memory limit."""


def own_rss_bytes() -> int:
    """Return the resident bytes of this process, 0 where the kernel does not tell."""
    try:
        return int(_STATM.read_bytes().split()[1]) * _PAGE_BYTES
    except OSError:
        return 0


class Engine:
    """An agent that searches; all it knows lies in the tiers of its run."""

    def __init__(
        self, run: Run, corpus: Corpus, leak: Leak, *, seed: int, limit_bytes: int
    ) -> None:
        """Go on where the run's tiers say that the search stands; `seed` is for a new one."""
        self.stop = threading.Event()
        """Set it and the engine raises Stopped at its next step."""
        self.pace = Pace()
        self._run = run
        self._corpus = corpus
        self._leak = leak
        self._limit_bytes = limit_bytes
        tiers = run.tiers
        self._workspace, self._recent = tiers["workspace"], tiers["recent"]
        self._verified, self._history = tiers["verified"], tiers["history"]
        self._stands = tiers["search"]
        known = self._stands.get(_STATE) if _STATE in self._stands else None
        state = known if isinstance(known, SearchState) else SearchState(seed=seed)
        self.search = Search(state, len(corpus.slices))

    def work(self, experiments: int | None = None) -> None:
        """Do so many experiments, or go on until stopped; raises Stopped or HardStop."""
        until = None if experiments is None else self._run.experiments + experiments
        while until is None or self._run.experiments < until:
            try:
                self._wait_for_leave()
                self.next_experiment()
            except (LogError, ReadOnlyError):  # nothing was lost; without a log nothing is done
                if self.stop.wait(_RETRY_S):
                    raise Stopped from None

    def next_experiment(self) -> None:
        """Do one experiment of the phase that the search is in."""
        if self.search.phase == "verification":
            self._verify()
        else:
            self._try(self.search.propose())

    def _wait_for_leave(self) -> None:
        """Wait while nothing new may begin; the library would, but not for our `stop`."""
        while self._run.mode != "running":
            self._run.safe_point()
            self._leak.rest()
            if self.stop.wait(_LOOK_S):
                raise Stopped

    def _try(self, settings: Settings) -> None:
        try:
            with self._run.experiment(settings.title, self.search.phase) as experiment:
                result, packed = self._compress(experiment, settings)
                kept = self.search.learn(settings, result.score)
                experiment.status = "kept" if kept else "discarded"
                self._keep(result, packed, experiment)
        except FAILURES as error:
            self.search.learn(settings, None)
            self._run.error("experiment", f"{settings.title}: {error}")
            self._remember_failure(settings)
            self._workspace.clear("call/")

    def _compress(self, experiment: Experiment, settings: Settings) -> tuple[Result, Packed]:
        number, length = self.search.slice, settings.chunk_bytes
        text = self._corpus.slices[number]
        inputs = self._workspace.build("call/input", "chunks", slice=number, chunk_bytes=length)
        dictionary = self._dictionary(text, settings)
        compress, outputs, spent_s = compressor(settings, dictionary), [], 0.0
        for index, chunk in enumerate(inputs):
            with self._run.tool("compress") as call:
                began = time.thread_time()
                packed = compress(chunk)
                took_s = time.thread_time() - began
                call.bytes_out = len(packed)
            self._workspace.put(
                f"call/compress/{index}",
                Call("compress", index, took_s, packed),
                source=call_source(number, settings, index),
            )
            outputs.append(packed)
            spent_s += took_s
            self._breathe(took_s, packed, len(inputs))
        packed_bytes = sum(map(len, outputs)) + len(dictionary)
        ratio = len(text) / packed_bytes
        result = Result(
            experiment=experiment.number,
            phase=experiment.phase,
            slice=number,
            settings=settings,
            status="",
            text_bytes=len(text),
            text_sha256=hashlib.sha256(text).hexdigest(),
            packed_bytes=packed_bytes,
            cpu_s=spent_s,
            ratio=ratio,
            score=score_of(ratio, len(text) / 1e6 / max(spent_s, 1e-6)),
        )
        return result, Packed(dictionary, tuple(outputs))

    def _dictionary(self, text: bytes, settings: Settings) -> bytes:
        if not settings.dictionary_bytes:
            return b""
        with self._run.tool("build dictionary") as call:
            began = time.thread_time()
            dictionary = build_dictionary(text, settings.dictionary_bytes)
            took_s = time.thread_time() - began
            call.bytes_out = len(dictionary)
        self._breathe(took_s, dictionary, _MANY)
        return dictionary

    def _keep(self, result: Result, packed: Packed, experiment: Experiment) -> None:
        """Move what the experiment made from the workspace to `recent`."""
        figures = {"ratio": result.ratio, "score": result.score, "cpu_s": result.cpu_s}
        experiment.metrics.update(figures)
        number, inputs = result.experiment, self._workspace.entry("call/input")
        result = structs.replace(result, status=experiment.status)
        again = packed_source(result.slice, result.settings)
        self._recent.put(f"result/{number}", result, importance=0.8)
        self._recent.put(
            f"packed/{number}", packed, source=None if result.status == "kept" else again
        )
        if inputs is not None:
            value = self._workspace.get("call/input")
            self._recent.put(f"input/{number}", value, source=inputs.source)
        self._workspace.clear("call/")
        self._stands.put(_STATE, self.search.state)

    def _remember_failure(self, settings: Settings) -> None:
        """Put the settings into `history` at once, as there is no result to keep in `recent`."""
        number = self._run.experiments
        failed = Metrics(
            experiment=number,
            slice=self.search.slice,
            settings=settings,
            status="failed",
            ratio=0.0,
            score=0.0,
            cpu_s=0.0,
        )
        self._history.put(f"summary/{number}", failed, experiment=number)
        self._stands.put(_STATE, self.search.state)

    def _verify(self) -> None:
        keys = [entry.key for entry in self._recent.entries() if entry.key.startswith("result/")]
        title = f"decompress and check {len(keys)} results"
        with self._run.experiment(title, "verification") as experiment:
            results: list[Result] = [self._recent.get(key) for key in keys]
            whole = [result for result in results if self._is_whole(result)]
            past = [self._history.get(entry.key) for entry in self._history.entries()]
            scores = [one.score for one in (*past, *whole) if isinstance(one, Metrics | Result)]
            for result in whole:
                self._vouch(result)
            experiment.metrics = {
                "checked": len(results),
                "whole": len(whole),
                "best": max(scores, default=None),
            }
            self._workspace.clear("call/")
            self.search.verified()
            self._stands.put(_STATE, self.search.state)

    def _is_whole(self, result: Result) -> bool:
        """Decompress a result; its text stays in the workspace until all are checked."""
        with self._run.tool("decompress") as call:
            began = time.thread_time()
            packed: Packed = self._recent.get(f"packed/{result.experiment}")
            back = decompressor(result.settings, packed.dictionary)
            text = b"".join(map(back, packed.chunks))
            took_s = time.thread_time() - began
            call.bytes_out = len(text)
        key, source = f"call/text/{result.experiment}", Source("text", {"slice": result.slice})
        self._workspace.put(key, text, source=source)
        self._breathe(took_s, packed.chunks[0], _CHECKS)
        return hashlib.sha256(text).hexdigest() == result.text_sha256

    def _vouch(self, result: Result) -> None:
        """Keep the best verified result of each slice, codec and chunk length: a bounded record."""
        key = f"slice {result.slice}/{result.settings.codec}/{result.settings.chunk_bytes}"
        old = self._verified.get(key) if key in self._verified else None
        if isinstance(old, Verified) and old.score > result.score:
            return
        again = (
            old.times if isinstance(old, Verified) and old.experiment == result.experiment else 0
        )
        record = Verified(
            experiment=result.experiment,
            settings=result.settings,
            text_sha256=result.text_sha256,
            packed_bytes=result.packed_bytes,
            ratio=result.ratio,
            score=result.score,
            times=again + 1,
        )
        self._verified.put(key, record, importance=1.0)

    def _breathe(self, worked_s: float, material: bytes, steps: int) -> None:
        """Between two steps: leak if told to, look at the limit, serve requests, and rest."""
        self._leak.grow(material)
        if own_rss_bytes() > self._limit_bytes:
            raise HardStop
        self._run.safe_point()
        if self.stop.wait(self.pace.rest_s(worked_s, steps)):
            raise Stopped


def summarize(entries: list[Entry]) -> Metrics | None:
    """Return what `history` keeps of an experiment that leaves `recent`."""
    results = (entry.value for entry in entries if isinstance(entry.value, Result))
    return next((metrics_of(result) for result in results), None)
