"""Samples: at once, on change, and at the end."""

from __future__ import annotations

from pathlib import Path

from memwatch.agent.memory.tiers import Keep, Tiers
from memwatch.agent.sampler import Sampler, own_memory
from memwatch.domain.errors import LogError
from tests.agent.reading import context_at, read_log
from tests.waiting import until


def test_own_memory_is_what_the_kernel_says() -> None:
    figures = own_memory()
    fields = dict(
        line.split(":", 1)
        for line in Path("/proc/self/status").read_text().splitlines()
        if ":" in line
    )
    assert figures["rss_bytes"] / int(fields["VmRSS"].split()[0]) / 1024 > 0.9
    assert figures.keys() == {"rss_bytes", "swap_bytes"}


def test_samples_first_last_and_on_change(tmp_path: Path) -> None:
    context = context_at(tmp_path)
    tiers = Tiers({"recent": Keep()}, context.record)
    sampler = Sampler(tiers, context.record, period_s=0.01)
    sampler.start()
    tiers["recent"].put("a", b"x" * 1000)
    until(lambda: context.log.last_lsn == 3)
    sampler.stop()
    context.log.close()
    samples = [record for record in read_log(tmp_path / "wal")[0] if record.kind == "sample"]
    assert [s.members["tiers"]["recent"]["entries"] for s in samples] == [0, 1, 1]
    assert samples[1].members["tiers"]["recent"]["bytes"] == tiers["recent"].bytes
    assert samples[0].members["process"]["rss_bytes"] > 1_000_000


def test_a_log_that_refuses_only_costs_the_sample(tmp_path: Path) -> None:
    calls: list[str] = []

    def refuse(kind: str, members: dict[str, object]) -> int:
        calls.append(kind)
        raise LogError("no space left")

    Sampler(Tiers({}, refuse), refuse).sample()
    assert calls == ["sample"]
