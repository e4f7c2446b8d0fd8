"""Samples: at once, on change, and at the end."""

from __future__ import annotations

from pathlib import Path

from memwatch.agent.sampler import Sampler, own_memory
from memwatch.domain.errors import LogError
from tests.agent.memory.holding import Held
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
    held = Held(tmp_path)
    sampler = Sampler(held.tiers, held.context.record, period_s=0.01)
    sampler.start()
    held.tier.put("a", b"x" * 1000)
    until(lambda: held.log.last_lsn == 3)
    sampler.stop()
    held.log.close()
    samples = held.records("sample")
    assert [s.members["tiers"]["recent"]["entries"] for s in samples] == [0, 1, 1]
    assert samples[1].members["tiers"]["recent"]["bytes"] == held.tier.bytes
    assert samples[0].members["process"]["rss_bytes"] > 1_000_000


def test_a_log_that_refuses_only_costs_the_sample(tmp_path: Path) -> None:
    calls: list[str] = []

    def refuse(kind: str, members: dict[str, object]) -> int:
        calls.append(kind)
        raise LogError("no space left")

    held = Held(tmp_path)
    Sampler(held.tiers, refuse).sample()
    held.log.close()
    assert calls == ["sample"]
