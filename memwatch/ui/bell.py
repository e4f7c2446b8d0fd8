"""When a viewer rings: once for each alert that is raised while it looks on."""

from __future__ import annotations

from memwatch.domain.snapshot import Snapshot


class Bell:
    """Knows the alerts that it rang for, or that were there when the viewer came."""

    def __init__(self) -> None:
        self._known: set[tuple[str, int]] | None = None

    def rings(self, snapshot: Snapshot) -> bool:
        """Return whether a snapshot brings an alert that viewers ring for."""
        raised = {(alert.key, alert.raised_us) for alert in snapshot.alerts if alert.bell}
        new = set() if self._known is None else raised - self._known
        self._known = raised
        return bool(new)
