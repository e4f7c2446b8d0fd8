"""`python -m memwatch.demo RUN_DIR`: run the engine as a process of its own, silently.

Ends with 0 when it was stopped or its time was over, 2 when it cannot be run as asked, 137 when
it passed its own memory limit, 1 when something else went wrong.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import threading
from collections.abc import Mapping
from pathlib import Path

from memwatch.agent import Keep, Operation, Run, RunOptions
from memwatch.config.load import load_profile
from memwatch.config.schema import Profile
from memwatch.demo.builders import Builders
from memwatch.demo.corpus import Corpus, read_corpus
from memwatch.demo.engine import NO_REST, Engine, HardStop, Stopped, summarize
from memwatch.demo.leak import OUTSIDE, Leak, check
from memwatch.demo.results import TYPES
from memwatch.domain.clock import SystemClock
from memwatch.domain.errors import MemwatchError, UsageError
from memwatch.domain.units import bytes_text

DEFAULT_LIMIT_BYTES = 300_000_000
SAMPLE_S = 1.0
KILLED = 137


def main(argv: list[str] | None = None) -> int:
    """Run the demo engine; returns the exit status."""
    args = _parser().parse_args(argv)
    try:
        return _run(args)
    except (MemwatchError, OSError) as error:
        sys.stderr.write(f"memwatch demo engine: {error}\n")
        return 2 if isinstance(error, UsageError) else 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m memwatch.demo", description=__doc__)
    parser.add_argument("run_dir", type=Path, help="directory of the run, made if need be")
    parser.add_argument("--seed", type=int, default=1, help="of the search (1)")
    parser.add_argument("--leak", type=float, default=0.0, metavar="MB_PER_MIN")
    parser.add_argument("--leak-in", default=OUTSIDE, metavar="TIER", help="where to leak")
    parser.add_argument("--limit", type=int, metavar="BYTES", help="memory limit of its own")
    parser.add_argument("--seconds", type=float, help="stop after this time")
    parser.add_argument("--experiments", type=int, metavar="N", help="stop after so many")
    parser.add_argument("--no-rest", action="store_true", help="work as fast as the machine can")
    parser.add_argument("--end-with-stdin", action="store_true", help="stop when it is closed")
    parser.add_argument("--profile", default="demo", help="name or path (demo)")
    return parser


def _run(args: argparse.Namespace) -> int:
    profile, corpus = load_profile(args.profile), read_corpus()
    limit = args.limit or profile.memory_limit_bytes or DEFAULT_LIMIT_BYTES
    # The leak needs the tiers, and the tiers' run is opened with its operations: a late binding.
    leaks: list[Leak] = []
    operation = Operation(
        run=lambda asked: leaks[0].ask(asked),
        about="forget to release results, for real; 0 stops and releases",
        args={"mb_per_min": "rate", "where": "outside, cache, or the name of a tier"},
    )
    options = run_options(profile, limit, corpus, {"leak": operation})
    try:
        check(args.leak, args.leak_in, options.keep)
    except ValueError as error:
        raise UsageError(str(error)) from None
    run = Run.open(args.run_dir, options)
    leak = Leak(run.tiers, SystemClock(), run.record, args.leak_in)
    leaks.append(leak)
    run.register_cache("leaked results", leak.drop_cache)
    engine = Engine(run, corpus, leak, seed=args.seed, limit_bytes=limit)
    if args.no_rest:
        engine.pace = NO_REST
    _stop_on_signals(engine.stop)
    if args.end_with_stdin:
        threading.Thread(target=_end_with_stdin, args=(engine.stop,), daemon=True).start()
    if args.seconds is not None:
        timer = threading.Timer(args.seconds, engine.stop.set)
        timer.daemon = True
        timer.start()
    with run:
        run.note(_introduction(corpus, profile))
        try:
            leak.turn(args.leak, args.leak_in)
            engine.work(args.experiments)
        except Stopped:
            run.close("stopped", "asked to stop, or its time was over")
        except HardStop:
            reason = f"memory limit {bytes_text(limit)} reached (the demo's own hard stop)"
            run.error("memory_limit", reason)
            run.close("crashed", reason)
            return KILLED
    return 0


def run_options(
    profile: Profile, limit: int, corpus: Corpus, operations: Mapping[str, Operation] | None = None
) -> RunOptions:
    """Return what the demo opens its run with."""
    return RunOptions(
        agent="demo",
        profile=profile.name,
        memory_limit_bytes=limit,
        keep={name: profile.retention.get(name, Keep()) for name in profile.tiers},
        share_cap=profile.share_cap,
        cadence=profile.checkpoints,
        operations=operations or {},
        types=TYPES,
        builders=Builders(corpus).by_name(),
        summarize=summarize,
        sample_s=SAMPLE_S,
    )


def _introduction(corpus: Corpus, profile: Profile) -> str:
    slices = f"{len(corpus.slices)} slices, {bytes_text(corpus.bytes)}"
    text = f"searching compression settings on {corpus.files} files of {corpus.source} ({slices})"
    return f"{text}; {profile.note}" if profile.note else text


def _end_with_stdin(stop: threading.Event) -> None:
    os.read(0, 1)  # not `sys.stdin`, whose lock this thread would hold at the end of the process
    stop.set()


def _stop_on_signals(stop: threading.Event) -> None:
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda *_: stop.set())


if __name__ == "__main__":
    sys.exit(main())
