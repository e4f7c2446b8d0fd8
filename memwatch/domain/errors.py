"""The error tree. Every message is one sentence that says what to do.

MemwatchError
 ├─ UsageError            the command line asked for something that cannot be (exit 2)
 │   ├─ TargetError       a path or name that is not a run we may open
 │   └─ ConfigError       a settings file with an unknown key or a wrong value
 ├─ LogError              the log writer could not append; nothing acknowledged was lost
 ├─ StoreError            the history could not be written or read; the live view goes on
 ├─ SessionError          the other end of a session is gone or speaks another protocol
 ├─ ReadOnlyError         a change was refused, as the run is read-only now
 ├─ UnkeepableError       a value that a log cannot hold; also a TypeError
 ├─ DamagedError          a file of a run does not hold what was written
 ├─ RecoveryError         a run cannot be recovered: two runs mixed, or a newer format
 └─ CallInDoubtError      a paid call of an earlier start may have been made: a person decides
"""


class MemwatchError(Exception):
    """Root of all errors that memwatch words for a person."""


class UsageError(MemwatchError):
    """The request cannot be served as worded; the process ends with status 2."""


class TargetError(UsageError):
    """The target is not a run that we may open."""


class ConfigError(UsageError):
    """A settings file is wrong; the message names file, line and nearest key."""


class LogError(MemwatchError):
    """A record could not be appended; records acknowledged before are safe."""


class StoreError(MemwatchError):
    """The history could not be written or read."""


class SessionError(MemwatchError):
    """The session ended: the guard is gone, or speaks another protocol."""


class ReadOnlyError(MemwatchError):
    """The run is read-only now: the change was refused, nothing was logged or applied."""


class UnkeepableError(MemwatchError, TypeError):
    """A value that a log cannot hold; nothing was logged or applied."""


class DamagedError(MemwatchError):
    """A file of a run does not hold what was written; the message names it."""


class RecoveryError(MemwatchError):
    """A run cannot be recovered by this version; nothing was changed."""


class CallInDoubtError(MemwatchError):
    """A paid call began in an earlier start and nobody knows how it ended; it was not repeated."""
