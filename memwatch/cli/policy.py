"""`memwatch policy`: the policy in force with the source of each value; check, set, unset, edit."""

from __future__ import annotations

import argparse
import json
import os
import shlex
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from memwatch.agent.files import SYSTEM_FILES
from memwatch.cli.asking import status_of
from memwatch.cli.engine_text import will_text
from memwatch.cli.policy_text import as_json, as_text
from memwatch.config.load import load_profile, named_profile
from memwatch.config.locations import run_home
from memwatch.config.policy_edit import parts_of, with_values, without_keys
from memwatch.config.policy_load import SET_FILE, PolicyBook, load_policy
from memwatch.config.schema import Profile
from memwatch.config.settings import load_config
from memwatch.config.yaml_file import read_text, read_tree
from memwatch.domain.errors import ConfigError, TargetError, UsageError
from memwatch.domain.text import inert
from memwatch.host.lock import FileLock, LockHeldError, holder
from memwatch.ingest.foreign import foreign_at
from memwatch.ingest.open_run import open_run
from memwatch.runtime.runs.attach import Attachment
from memwatch.runtime.runs.target import GUARD_LOCK, newest, resolve, run_key

_VERBS = ("check", "set", "unset", "edit")
_LOCK = "policy.lock"
_TURN_S = 10.0
"""How long one change waits for another."""
_TEMPLATE = """# What this run changes in its policy; `memwatch policy` shows the whole.
# thresholds: {warn: 0.5, intervene: 0.7}
# exit: {warn: 0.45, intervene: 0.65, emergency: 0.5}
# phases: {verification: {retention: {recent: {experiments: 10}}}}
"""
_EXAMPLE = """examples:
  memwatch policy                          of the newest run: each value and where it is from
  memwatch policy night-7 --phase verification
  memwatch policy check ./my-policy.yaml
  memwatch policy set night-7 thresholds.warn=0.55 exit.warn=0.5
  memwatch policy set night-7 budget.recover_s=60 budget.work_s=300    what a crash may cost
  memwatch policy unset night-7 thresholds.warn
  memwatch policy edit night-7             in $VISUAL or $EDITOR

What is set is checked first and holds for this run; a guard that watches it takes it over within
2 s. `set` and `unset` write the file anew: comments in it go, `edit` keeps them.
exit status: 0 fine; 1 `check` found it wrong, or an edit was given up; 2 nothing was changed."""


class _Subject(NamedTuple):
    """What a policy is of: a run, a file, or nothing but the user."""

    name: str
    profile: Profile
    key: str = ""
    """Key of the run; empty for none."""
    run_dir: Path | None = None
    ops: frozenset[str] | None = None
    file: Path | None = None
    notes: tuple[str, ...] = ()

    @property
    def home(self) -> Path | None:
        return run_home(self.key) if self.key else None

    def load(self, draft: str | None = None) -> PolicyBook:
        return load_policy(
            self.profile,
            run_dir=self.run_dir,
            run_home=self.home,
            extra=self.file,
            ops=self.ops,
            draft=draft,
        )


def run(words: list[str]) -> int:
    """Show or change a policy; returns 1 when a checked one is wrong."""
    verb, rest = (words[0], words[1:]) if words and words[0] in _VERBS else ("show", words)
    parser = argparse.ArgumentParser(
        prog="memwatch policy" if verb == "show" else f"memwatch policy {verb}",
        usage=None if verb != "show" else _USAGE,
        description="The policy: when the guard does what, and where each value comes from.",
        epilog=_EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    if verb in ("show", "check"):
        parser.add_argument("target", nargs="?", help="run directory, run id, or a file of policy")
    else:
        parser.add_argument("target", help="run directory or run id")
    if verb == "show":
        parser.add_argument("--phase", metavar="P", help="all of it as it is in this phase")
        parser.add_argument("--json", action="store_true", help="one JSON object, stable names")
    if verb == "set":
        parser.add_argument("changes", nargs="+", metavar="KEY=VALUE", help="a value is YAML")
    if verb == "unset":
        parser.add_argument("keys", nargs="+", metavar="KEY", help="back to what it was without")
    options = parser.parse_args(rest)
    work: dict[str, Callable[[argparse.Namespace], int]] = {
        "show": _show,
        "check": _check,
        "set": _set,
        "unset": _unset,
        "edit": _edit,
    }
    return work[verb](options)


_USAGE = """memwatch policy [TARGET|FILE] [--phase P] [--json]
       memwatch policy check [TARGET|FILE]
       memwatch policy set TARGET KEY=VALUE...
       memwatch policy unset TARGET KEY...
       memwatch policy edit TARGET"""


def _show(options: argparse.Namespace) -> int:
    subject = _subject(options.target)
    book = subject.load()
    if options.phase is not None and options.phase not in book.phases and not options.json:
        known = ", ".join(sorted(book.phases)) or "none"
        print(f"phase {inert(options.phase, 40)!r} has nothing of its own (known: {known})\n")
    if options.json:
        print(json.dumps(as_json(subject.name, subject.profile.name, book, options.phase)))
    else:
        notes = (*subject.notes, *_said_by_a_person(subject))
        print(as_text(subject.name, subject.profile.name, book, options.phase, notes))
    return 0


def _said_by_a_person(subject: _Subject) -> Iterator[str]:
    """Tell what goes before the policy's own `mode` and `allow`, as the guard says."""
    if subject.run_dir is None:
        return
    status = status_of(Attachment(subject.run_dir))
    engine = status.get("engine") or {}
    if engine.get("asked"):
        by = inert(str(engine.get("by") or "a person"), 40)
        yield f"mode and allow are what {by} said, not the policy's: {will_text(status)}"


def _check(options: argparse.Namespace) -> int:
    subject = _subject(options.target)
    try:
        load_config()
        book = subject.load()
    except ConfigError as error:
        print(error)
        return 1
    said = sum(not source.startswith(("default", "by ")) for source in book.sources.values())
    for note in (*subject.notes, *book.notes):
        print(f"note: {note}")
    for why in book.missing.values():
        print(f"note: {why}; the built-in policy goes without it")
    values = f"{said} value{'' if said == 1 else 's'} set by {len(book.used)} "
    print(f"valid: {values}{'file' if len(book.used) == 1 else 'files'}, the rest built in")
    return 0


def _set(options: argparse.Namespace) -> int:
    subject = _run(options.target)
    changes: dict[str, str] = {}
    for word in options.changes:
        key, equals, value = word.partition("=")
        if not equals:
            raise UsageError(f"{inert(word, 60)!r} is no change; write key=value")
        if parts_of(key)[0] in ("mode", "allow"):
            raise UsageError(
                f"{key} is the engine's authority: `memwatch ctl {inert(options.target, 60)} mode "
                "MODE [--allow OPS]` gives it for this run, `memwatch guard --mode` at its start"
            )
        changes[key] = value
    with _alone(subject):
        path, text = _present(subject)
        _put(subject, path, with_values(text, inert(str(path)), changes))
    print(f"{_listed(changes)} set for {subject.name}; {_taken_over(subject)}")
    return 0


def _unset(options: argparse.Namespace) -> int:
    subject = _run(options.target)
    with _alone(subject):
        path, text = _present(subject)
        _put(subject, path, without_keys(text, inert(str(path)), options.keys))
    print(f"{_listed(options.keys)} no longer set for {subject.name}; {_taken_over(subject)}")
    return 0


def _edit(options: argparse.Namespace) -> int:
    subject = _run(options.target)
    command = _editor()
    path, text = _present(subject)
    draft = path.with_name(f"{SET_FILE}.{os.getpid()}.edit.yaml")
    SYSTEM_FILES.write_new(draft, (text or _TEMPLATE).encode(), mode=0o600)
    while True:
        done = subprocess.run([*command, str(draft)], check=False).returncode
        if done:
            print(f"{command[0]} ended with status {done}; nothing changed")
            SYSTEM_FILES.discard(draft)
            return 1
        try:
            written = read_text(draft)
            if written is None:
                print("the editor left no file; nothing changed")
                return 1
            with _alone(subject):
                if _present(subject)[1] != text:
                    print(f"it was changed meanwhile; your text is kept in {draft}")
                    return 1
                _put(subject, path, written)
        except ConfigError as error:
            print(error)
            if _again():
                continue
            print(f"nothing changed; your text is kept in {draft}")
            return 1
        SYSTEM_FILES.discard(draft)
        print(f"policy of {subject.name} written; {_taken_over(subject)}")
        return 0


def _again() -> bool:
    try:
        return input("edit again? [Y/n] ").strip().lower() in ("", "y", "yes")
    except EOFError:
        print()
        return False


def _editor() -> list[str]:
    """Return the user's editor as an argument list: no shell reads it."""
    chosen = os.environ.get("VISUAL") or os.environ.get("EDITOR")
    try:
        words = shlex.split(chosen) if chosen else []
    except ValueError:
        raise UsageError("$VISUAL or $EDITOR has a quote that does not end") from None
    words = words or [name for name in ("sensible-editor", "vi", "nano") if shutil.which(name)][:1]
    if not words or shutil.which(words[0]) is None:
        raise UsageError("there is no editor; name one in $EDITOR, or use `memwatch policy set`")
    return words


@contextmanager
def _alone(subject: _Subject) -> Iterator[None]:
    """Let nobody else change this policy meanwhile: of two at once, one would lose what it set."""
    until = time.monotonic() + _TURN_S
    while True:
        try:
            lock = FileLock.acquire(run_home(subject.key, create=True) / _LOCK)
            break
        except LockHeldError as error:
            if time.monotonic() > until:
                busy = f"process {error.pid or '(unknown)'} is changing this policy"
                raise UsageError(f"{busy}; try again when it is done") from None
    with lock:
        yield


def _put(subject: _Subject, path: Path, text: str) -> None:
    """Write a policy once it is known to be fine; raises ConfigError and changes nothing."""
    subject.load(draft=text)
    SYSTEM_FILES.replace(path, text.encode(), mode=0o600)


def _present(subject: _Subject) -> tuple[Path, str]:
    """Return where the policy of a run is set, and what is there."""
    path = run_home(subject.key, create=True) / SET_FILE
    return path, read_text(path, "user") or ""


def _taken_over(subject: _Subject) -> str:
    home = subject.home
    pid = holder(home / GUARD_LOCK) if home else None
    return f"guard {pid} takes it over within 2 s" if pid else "its next guard goes by it"


def _listed(keys: object) -> str:
    names = [str(key) for key in keys] if isinstance(keys, dict | list) else []
    return inert(", ".join(names), 200)


def _run(target: str) -> _Subject:
    subject = _subject(target)
    if not subject.key:
        raise TargetError(f"{inert(target, 60)!r} is a file; name the run it is for")
    return subject


def _file(path: Path) -> _Subject:
    """Return a file of policy, of settings, or of a profile: by what it holds."""
    name, tree = inert(path.name, 60), read_tree(path, may_be_empty=True)
    if tree is not None and "name" in tree.values:
        return _Subject(name, load_profile(str(path.absolute())))
    return _Subject(name, named_profile("native"), file=path)


def _subject(target: str | None) -> _Subject:
    if target is None:
        try:
            path = newest()
        except TargetError:
            return _Subject("no run", named_profile("native"))
    else:
        path = Path(target)
        if path.is_file() and foreign_at(path) is None:
            return _file(path)
        if target.endswith((".yaml", ".yml")) and not path.exists():
            raise ConfigError(f"{inert(target, 120)} cannot be read: No such file or directory")
        path = resolve(target)
    opened = open_run(path)
    manifest = opened.manifest
    notes: tuple[str, ...] = ()
    try:
        profile = named_profile(manifest.profile)
    except ConfigError as error:
        profile, notes = named_profile("native"), (f"{error}; the native profile is used",)
    return _Subject(
        name=inert(manifest.run_id, 60),
        profile=profile,
        key=run_key(opened.path, manifest.run_id),
        run_dir=opened.path,
        ops=opened.ops,
        notes=notes,
    )
