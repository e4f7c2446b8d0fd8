"""A /proc of our own: processes, groups and mounts as files in a temporary directory."""

from __future__ import annotations

from pathlib import Path

BOOT_ID = "0b7ff1f6-8a3d-4b0e-a8a5-2c6fa7b5f8a1"


class FakeProc:
    """Files that look like the kernel's, for machines that we do not have."""

    def __init__(self, home: Path) -> None:
        self.root = home / "root"
        self.path = home / "proc"
        boot = self.path / "sys" / "kernel" / "random"
        boot.mkdir(parents=True)
        (boot / "boot_id").write_text(BOOT_ID + "\n")
        (self.path / "self").mkdir()

    def add(
        self,
        pid: int,
        ppid: int = 1,
        *,
        start_ticks: int = 0,
        state: str = "S",
        group: int = 1,
        session: int = 1,
        threads: int = 1,
        rss_kib: int = 1000,
        swap_kib: int | None = 0,
        command: bytes = b"agent",
        arguments: bytes | None = None,
        uid: int = 1000,
    ) -> int:
        """Add or change a process."""
        place = self.path / str(pid)
        place.mkdir(exist_ok=True)
        head = b"%d (%b) %b %d %d %d" % (pid, command, state.encode(), ppid, group, session)
        rest = f" 0 -1 4194304 0 0 0 0 0 0 0 0 20 0 {threads} 0 {start_ticks or pid * 10} 9 9 9\n"
        (place / "stat").write_bytes(head + rest.encode())
        status = f"Name:\tx\nUid:\t{uid}\t{uid}\t{uid}\t{uid}\n"
        if state != "Z":
            status += f"VmHWM:\t  999999 kB\nVmRSS:\t{rss_kib:8} kB\n"
            status += "" if swap_kib is None else f"VmSwap:\t{swap_kib:8} kB\n"
        (place / "status").write_text(status)
        (place / "cmdline").write_bytes(arguments if arguments is not None else command + b"\0")
        return pid

    def remove(self, pid: int) -> None:
        """Let a process end and be reaped."""
        place = self.path / str(pid)
        for file in place.iterdir():
            file.unlink()
        place.rmdir()

    def mounts(self, *lines: str) -> None:
        """Set the mounts: `root point kind options`."""
        text = ""
        for number, line in enumerate(lines):
            root, point, kind, options = line.split(" ")
            text += (
                f"{number} 1 0:{number} {root} {point} rw,nosuid shared:1 - {kind} dev {options}\n"
            )
        (self.path / "self" / "mountinfo").write_text(text)

    def groups(self, pid: int, *lines: str) -> None:
        """Set the control groups of a process."""
        place = self.path / str(pid)
        place.mkdir(exist_ok=True)
        (place / "cgroup").write_text("".join(f"{line}\n" for line in lines))

    def limit(self, path: str, text: str | int) -> None:
        """Set a file below the root that mount points hang on."""
        place = self.root / path.lstrip("/")
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(f"{text}\n")
