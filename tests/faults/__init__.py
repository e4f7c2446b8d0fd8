"""Tests against failing disks and dying processes."""
