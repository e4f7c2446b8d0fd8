"""A report as Markdown: what others wrote stays text, whatever they wrote."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from memwatch.analytics.report.escape import escaped, inline, table
from memwatch.analytics.report.markdown import markdown
from memwatch.domain.record import Record
from tests.analytics.report.night import Log, agent_log, guard_log, told

EVIL = "<b>|`x`|</b> [a](http://b) *c* ![](d) \x1b[31m www.e.org\n# f"
UNTAMED = re.compile(r"(?<!\\)(?:\\\\)*[`*<>|\[\]~]")


@given(st.text())
def test_no_sign_that_acts_is_left_bare(text: str) -> None:
    for out in (escaped(text), inline(text)):
        assert UNTAMED.search(out) is None
        assert "\n" not in out
        assert "\x1b" not in out
    assert not escaped(text).startswith(("#", "-", "+", "="))


@given(st.lists(st.tuples(st.text(max_size=20), st.text(max_size=20)), min_size=1, max_size=5))
def test_a_table_has_the_same_cells_in_each_row(rows: list[tuple[str, str]]) -> None:
    lines = table("t", ("a", "b"), [(escaped(one), "x" + escaped(two)) for one, two in rows])[3:]
    assert {len(re.findall(r"(?<!\\)(?:\\\\)*\|", line)) for line in lines} == {3}


def evil(record: Record) -> Record:
    """Return a record whose texts, but the words of the format, are hostile."""
    kept = {"id", "k", "kind", "state", "mode", "level", "rule", "effect", "op", "origin", "status"}
    members = {
        name: EVIL if isinstance(value, str) and name not in kept else value
        for name, value in record.members.items()
    }
    return Record(record.lsn, record.t_us, record.m_us, record.kind, members)


def test_hostile_logs_make_a_report_of_the_same_shape() -> None:
    agent, guard = agent_log().records, guard_log().records
    plain = markdown(told(agent, guard))
    hostile = markdown(told(map(evil, agent), map(evil, guard), run=EVIL, path=EVIL))
    assert "\x1b" not in hostile

    def heads(text: str) -> list[str]:
        return [line for line in text.splitlines() if line.startswith("## ")]

    assert heads(hostile) == heads(plain)
    for line in hostile.splitlines():
        if not line.startswith(("|", "  `memwatch", ">", "- **", "#")):
            assert UNTAMED.search(line) is None


def test_tables_without_rows_and_columns_without_figures_are_left_out() -> None:
    text = markdown(told(agent_log().records, []))
    assert "## Plans of the engine" not in text
    assert "## Deaths and starts" in text
    assert text.count("- **") == 10
    both = markdown(told(agent_log().records, guard_log().records))
    assert "memwatch policy set night-7 'levels.warn.steps=[" in both


def test_memory_stays_bounded_whatever_the_logs_repeat() -> None:
    log = Log()
    for n in range(12_000):
        log.say("alert", n, key=f"k{n}", state="raised", severity="error", text="t" * 300)
        log.say("estimate", n, low_s=1.0, likely_s=float(n % 97), high_s=200.0)
        log.say("plan", n, id=f"p{n}", rule="levels.warn", level="warn", state="done")
    agent = Log()
    for n in range(12_000):
        agent.say("experiment.end", n, status=f"s{n}", duration_us=1)
        agent.say("purge.end", n, tier=f"t{n}", cause="retention")
        agent.say("checkpoint.commit", n, id=f"c{n}", kind="full", bytes=n)
    report = told(agent.records, log.records)
    assert len(report.alerts) <= 200
    assert len(report.estimates) <= 24
    assert max(one.rto_s.likely for one in report.estimates) == 96.0, "a peak is never lost"
    assert len(report.experiments.by_status) <= 65
    assert sum(report.experiments.by_status.values()) == 12_000
    assert len(markdown(report)) < 100_000
