"""Profiles as YAML: what each kind of agent looks like."""
