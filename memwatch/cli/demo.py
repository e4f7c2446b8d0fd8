"""`memwatch demo`: a real agent under a small limit, watched like any other, and cleaned up."""

from __future__ import annotations

import argparse
import contextlib
import json
import secrets
import subprocess
import sys
import time

from memwatch.cli.amounts import amount, span
from memwatch.cli.asking import ask
from memwatch.cli.ctl_words import answer_object
from memwatch.cli.dashboard import add_screen_options, require_terminal, show
from memwatch.cli.status import exit_status
from memwatch.cli.status_text import status_text
from memwatch.config.locations import home
from memwatch.domain.command import FINAL_STATES, Command
from memwatch.domain.errors import MemwatchError, SessionError, TargetError, UsageError
from memwatch.domain.text import inert
from memwatch.runtime.protocol.thin_client import status_json
from memwatch.runtime.runs.attach import Attachment
from memwatch.runtime.runs.target import newest_live

_EXAMPLE = """examples:
  memwatch demo                     the dashboard on a small agent; q ends both
  memwatch demo --leak 120          it leaks 120 MB a minute from the start
  memwatch demo leak 60             switch the leak of the running demo, from another terminal
  memwatch demo leak 0              stop it and let it go
  memwatch demo --headless --seconds 30 --json

The agent searches good compression settings for Python's own library: no model, no network."""
_START_TIMEOUT_S = 15.0
_LEAK_TIMEOUT_S = 10.0
_END_TIMEOUT_S = 30.0


def run(words: list[str]) -> int:
    """Run the demo, or switch the leak of the one that runs."""
    parser = _parser()
    options = parser.parse_args(words)
    if options.what is not None:
        return _switch_leak(options.rate, as_json=options.json)
    if options.json and not options.headless:
        raise UsageError(
            "--json goes with --headless: memwatch demo --headless --seconds 30 --json"
        )
    if options.headless and options.seconds is None:
        raise UsageError("--headless needs an end, for example --seconds 30")
    if not options.headless:
        require_terminal()
    with Demo(options) as demo:
        if options.headless:
            return _headless(demo, options)
        demo.on_screen = True
        show(demo.attachment, options)
    print("the demo is over; all that stays is host.json: how fast this machine is")
    return 0


class Demo:
    """A demo agent with its keeper; leaving the block ends both and removes the run."""

    def __init__(self, options: argparse.Namespace) -> None:
        self._dir = home(create=True) / "demo" / secrets.token_hex(6)
        self._options = options
        self._keeper: subprocess.Popen[bytes] | None = None
        self.on_screen = False
        """A dashboard was shown: if its terminal is gone afterwards, nobody quit."""

    def __enter__(self) -> Demo:
        """Start the agent; raises MemwatchError when it does not begin its run."""
        self._dir.parent.mkdir(mode=0o700, exist_ok=True)
        self._keeper = subprocess.Popen(
            self._command(),
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            start_new_session=True,
        )
        try:
            self.attachment = self._attachment()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        """Let the keeper end everything; when the terminal is gone it goes on for a while."""
        keeper = self._keeper
        if keeper is None or keeper.stdin is None:
            return
        gone = self.on_screen and not sys.stdin.isatty()
        with contextlib.suppress(BrokenPipeError):
            if not gone:
                keeper.stdin.write(b"quit\n")
            keeper.stdin.close()
        if not gone:
            try:
                keeper.wait(timeout=_END_TIMEOUT_S)
            except subprocess.TimeoutExpired:
                raise MemwatchError(
                    f"the demo has not ended yet; its keeper, process {keeper.pid}, goes on trying"
                ) from None

    def _command(self) -> list[str]:
        """Return the command line of the keeper, which hands what it does not know to the engine.

        Without a screen there is nobody who could come back: such a demo ends with its caller.
        """
        options = self._options
        command = [sys.executable, "-m", "memwatch.demo.keeper", str(self._dir)]
        if options.headless:
            command += ["--stay", "0"]
        command += ["--leak", str(options.leak), "--leak-in", options.leak_in]
        return command if options.seed is None else [*command, "--seed", str(options.seed)]

    def _attachment(self) -> Attachment:
        until = time.monotonic() + _START_TIMEOUT_S
        while True:
            try:
                return Attachment(self._dir)
            except TargetError as error:
                if time.monotonic() > until or self._gone():
                    raise MemwatchError(f"the demo's agent did not start: {error}") from None
            time.sleep(0.05)

    def _gone(self) -> bool:
        return self._keeper is not None and self._keeper.poll() is not None


def _headless(demo: Demo, options: argparse.Namespace) -> int:
    """Watch for a while without a screen; print the last status, as `memwatch status` does."""
    until = time.monotonic() + options.seconds
    demo.attachment.ensure().close()
    time.sleep(max(until - time.monotonic(), 0))
    status = json.loads(status_json(str(demo.attachment.socket)))
    print(json.dumps(status) if options.json else status_text(status))
    return exit_status(status)


def _switch_leak(rate: float | None, *, as_json: bool = False) -> int:
    """Ask the running demo to leak, and wait for its answer; as JSON it is the request."""
    if rate is None or rate < 0:
        raise UsageError("name the rate in MB a minute, for example: memwatch demo leak 60")
    command = Command(op="leak", args={"mb_per_min": rate}, why="memwatch demo leak", by="demo")
    known = ask(Attachment(newest_live("demo")), command, _LEAK_TIMEOUT_S)
    if known.state not in FINAL_STATES:
        raise SessionError("the demo has not answered yet; `memwatch status` shows what it does")
    if as_json:
        print(json.dumps(answer_object(known)))
    else:
        print(f"leak {known.state}" + (f": {inert(known.detail)}" if known.detail else ""))
    return int(known.state != "done")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="memwatch demo",
        description="Starts a small real agent under a limit of 300 MB and watches it.",
        epilog=_EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("what", nargs="?", choices=["leak"], help="switch the running demo's leak")
    parser.add_argument("rate", nargs="?", type=amount, help="MB a minute; 0 stops and lets go")
    parser.add_argument(
        "--leak", type=amount, default=0.0, metavar="MB", help="MB a minute at start"
    )
    parser.add_argument(
        "--leak-in",
        choices=["outside", "cache", "workspace"],
        default="outside",
        help="where it forgets to let go: outside all tiers, in a cache, or in the workspace",
    )
    parser.add_argument("--seed", type=int, help="of the search; default: random")
    parser.add_argument("--headless", action="store_true", help="no screen; status at the end")
    parser.add_argument("--seconds", type=span, help="how long, with --headless")
    parser.add_argument(
        "--json",
        action="store_true",
        help="answer as JSON: the status with --headless, or what became of `leak`",
    )
    add_screen_options(parser)
    return parser
