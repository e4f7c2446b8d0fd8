"""Read-only facts of this machine: process identity, limits, disks, file systems."""
